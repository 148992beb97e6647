// Messages along a junction tree: sums, maxima, and what follows from them.
//
// factors: scores of all factors' entries, kLogOfZero where forbidden; tables, separated: tree.table_size and
// tree.separated_size doubles.
#pragma once

#include <queue>
#include <random>

#include "structures/junction_tree.h"
#include "structures/numbers.h"
#include "support/parallel.h"

namespace partwise::junction {

// The column of the clique's table at which its separator's variables have these rows.
inline Index column_of(const Clique& c, const Index* rows) {
    Index column = 0;
    for (std::size_t k = 0; k < c.separator.size(); ++k) column += c.steps[k] * rows[c.separator[k]];
    return column;
}

// The number of columns to process at a time: a few rows of so many columns fit into the first cache.
constexpr Index kBlock = 256;

// large = small, repeated along the axes that the small table does not have
inline void spread(const Inside& in, const double* __restrict small, double* __restrict large) {
    if (in.moves) {
        for_each_run(in, [&](Index at, Index from) { copy(small + from, large + at, in.run); });
    } else {
        for_each_run(in, [&](Index at, Index from) { fill(large + at, in.run, small[from]); });
    }
}

// large += small
inline void add(const Inside& in, const double* __restrict small, double* __restrict large) {
    if (in.moves) {
        for_each_run(in, [&](Index at, Index from) { axpy(1.0, small + from, large + at, in.run); });
    } else {
        for_each_run(in, [&](Index at, Index from) {
            const double value = small[from];
            for (Index k = 0; k < in.run; ++k) large[at + k] += value;
        });
    }
}

// small += large, summed over the axes that the small table does not have
inline void add_sums(const Inside& in, const double* __restrict large, double* __restrict small) {
    if (in.moves) {
        for_each_run(in, [&](Index at, Index from) { axpy(1.0, large + at, small + from, in.run); });
    } else {
        for_each_run(in, [&](Index at, Index from) { small[from] += sum_of(large + at, in.run); });
    }
}

// Fills a clique's table of scores: the sum of its factors and its children's messages. Factors that have only some of
// the clique's variables are added up in a smaller table first.
inline void build(const Tree& tree, const Clique& c, const double* factors, const double* separated, double* table,
                  double* scratch) {
    double* local = c.local > 0 ? scratch : table;
    fill(local, c.local > 0 ? c.local : c.rows * c.columns, 0.0);
    for (const Factor& f : c.factors) add(f.place, factors + f.begin, local);
    // Row by row, while a row is in the cache.
    for (Index r = 0; r < c.rows; ++r) {
        double* row = table + r * c.columns;
        if (c.local > 0) spread(c.local_place, local + r * (c.local / c.rows), row);
        for (const Index child : c.children) {
            const Clique& other = tree.cliques[child];
            add(other.in_parent, separated + other.separated + r * other.row, row);
        }
    }
}

struct Column {
    double message;
    double entropy;
};

// normalise() for a table of one column, whose rows are neighbours in memory.
inline Column normalise_one(double* t, Index rows) {
    double high = t[0];
    PARTWISE_SIMD_MAX(high)
    for (Index r = 0; r < rows; ++r) high = t[r] > high ? t[r] : high;
    double total = 0;
    double energy = 0;
#pragma omp simd reduction(+ : total, energy)
    for (Index r = 0; r < rows; ++r) {
        const double x = t[r] - high;
        const double e = fast_exp(x);
        t[r] = e;
        total += e;
        energy += e * x;
    }
    scale(1.0 / total, t, rows);
    return {high + std::log(total), std::log(total) - energy / total};
}

// t(r, s) becomes exp(t(r, s) - message(s)). Shifted by the column's maximum, the exponentials neither overflow nor all
// vanish, and their sum is at least 1.
inline void normalise(double* t, Index rows, Index columns, double* messages, double* entropies) {
    if (columns == 1) {
        const Column one = normalise_one(t, rows);
        messages[0] = one.message;
        if (entropies) entropies[0] = one.entropy;
        return;
    }
    double high[kBlock];
    double total[kBlock];
    double energy[kBlock];
    for (Index first = 0; first < columns; first += kBlock) {
        const Index n = std::min(kBlock, columns - first);
        copy(t + first, high, n);
        for (Index r = 1; r < rows; ++r) {
            const double* row = t + r * columns + first;
            for (Index s = 0; s < n; ++s) high[s] = row[s] > high[s] ? row[s] : high[s];
        }
        fill(total, n, 0.0);
        fill(energy, n, 0.0);
        for (Index r = 0; r < rows; ++r) {
            double* row = t + r * columns + first;
#pragma omp simd
            for (Index s = 0; s < n; ++s) {
                const double x = row[s] - high[s];
                const double e = fast_exp(x);
                row[s] = e;
                total[s] += e;
                energy[s] += e * x;
            }
        }
#pragma omp simd
        for (Index s = 0; s < n; ++s) {
            const double log_total = fast_log1p(total[s] - 1.0);
            total[s] = 1.0 / total[s];
            messages[first + s] = high[s] + log_total;
            energy[s] = log_total - energy[s] * total[s];
        }
        if (entropies) copy(energy, entropies + first, n);
        for (Index r = 0; r < rows; ++r) {
            double* row = t + r * columns + first;
            for (Index s = 0; s < n; ++s) row[s] *= total[s];
        }
    }
}

inline void maxima(const double* t, Index rows, Index columns, double* messages) {
    copy(t, messages, columns);
    for (Index r = 1; r < rows; ++r) {
        const double* row = t + r * columns;
        for (Index s = 0; s < columns; ++s) messages[s] = row[s] > messages[s] ? row[s] : messages[s];
    }
}

// Sums the rows of a clique's table into the tables of its children's separators and of its factors.
class Collector {
   public:
    Collector(const Tree& tree, const Clique& c, double* separated, double* factors, double* scratch)
        : tree_(tree), c_(c), separated_(separated), factors_(factors), local_(scratch) {
        for (const Index child : c.children) {
            const Clique& other = tree.cliques[child];
            fill(separated + other.separated, other.columns, 0.0);
        }
        if (factors) fill(local_, c.local, 0.0);
    }

    void add_row(Index r, const double* row) {
        for (const Index child : c_.children) {
            const Clique& other = tree_.cliques[child];
            add_sums(other.in_parent, row, separated_ + other.separated + r * other.row);
        }
        if (factors_ && c_.local > 0) add_sums(c_.local_place, row, local_ + r * (c_.local / c_.rows));
    }

    void end(const double* table) {
        if (!factors_) return;
        for (const Factor& f : c_.factors) {
            fill(factors_ + f.begin, f.size, 0.0);
            add_sums(f.place, c_.local > 0 ? local_ : table, factors_ + f.begin);
        }
    }

   private:
    const Tree& tree_;
    const Clique& c_;
    double* separated_;
    double* factors_;
    double* local_;
};

// Up, in the order of elimination. A table's entry is T(r, s) = factors + messages of the children, and its message is
//   m(s) = log sum_r exp T(r, s).
// Leaves the conditionals exp(T(r, s) - m(s)) in the tables, each the one exponential of its entry, and in `entropies`
// (separated_size values, or null) the entropy of each column. Returns log Z.
inline double sum_up(const Tree& tree, const double* factors, double* tables, double* separated, double* entropies,
                     Workspace& ws) {
    Workspace::Frame frame(ws);
    double* scratch = frame.take(tree.local_size);
    double log_z = 0;
    for (const Clique& c : tree.cliques) {
        Interrupt::check_current();
        double* table = tables + c.table;
        build(tree, c, factors, separated, table, scratch);
        normalise(table, c.rows, c.columns, separated + c.separated, entropies ? entropies + c.separated : nullptr);
        if (c.parent < 0) log_z += separated[c.separated];
    }
    return log_z;
}

// Down: conditionals become joint probabilities of cliques, conditional times the separator's marginal, which is summed
// from the parent's table. Leaves the expected use of factors' entries in `factors`, if it is not null. Returns the
// entropy, the mean of the columns', if `entropies` are given.
inline double sum_down(const Tree& tree, double* tables, double* separated, const double* entropies, double* factors,
                       Workspace& ws) {
    Workspace::Frame frame(ws);
    double* scratch = frame.take(tree.local_size);
    double entropy = 0;
    for (std::size_t p = tree.cliques.size(); p > 0; --p) {
        Interrupt::check_current();
        const Clique& c = tree.cliques[p - 1];
        double* table = tables + c.table;
        double* marginals = separated + c.separated;
        if (c.parent < 0) marginals[0] = 1.0;
        if (entropies) entropy += dot(marginals, entropies + c.separated, c.columns);
        Collector collector(tree, c, separated, factors, scratch);
        for (Index r = 0; r < c.rows; ++r) {
            double* row = table + r * c.columns;
            if (c.parent >= 0) {
                for (Index s = 0; s < c.columns; ++s) row[s] *= marginals[s];
            }
            collector.add_row(r, row);
        }
        collector.end(table);
    }
    return entropy;
}

// The entries of cliques that are allowed: those with a value above `least` in `tables`.
struct Support {
    const double* tables;
    double least;
};

inline void forbid_outside(const Support& support, const Clique& c, double* tables) {
    const Index end = c.table + c.rows * c.columns;
    for (Index k = c.table; k < end; ++k) {
        if (!(support.tables[k] > support.least)) tables[k] = kLogOfZero;
    }
}

// Up, with m(s) = max_r T(r, s); leaves T in the tables. Returns the maximum. Forbids entries outside `support`.
inline double max_up(const Tree& tree, const double* factors, double* tables, double* separated, Workspace& ws,
                     const Support* support) {
    Workspace::Frame frame(ws);
    double* scratch = frame.take(tree.local_size);
    double best = 0;
    for (const Clique& c : tree.cliques) {
        Interrupt::check_current();
        build(tree, c, factors, separated, tables + c.table, scratch);
        if (support) forbid_outside(*support, c, tables);
        maxima(tables + c.table, c.rows, c.columns, separated + c.separated);
        if (c.parent < 0) best += separated[c.separated];
    }
    return best;
}

// Chooses the row with the largest T for each variable before `done`, the last variable first; ties go to the lowest
// row. Rows of later variables are given.
inline void choose(const Tree& tree, const double* tables, Index done, Index* rows) {
    for (Index p = done; p > 0; --p) {
        const Clique& c = tree.cliques[p - 1];
        const double* column = tables + c.table + column_of(c, rows);
        Index best = 0;
        for (Index r = 1; r < c.rows; ++r) {
            if (column[r * c.columns] > column[best * c.columns]) best = r;
        }
        rows[p - 1] = best;
    }
}

// Draws the rows of all variables from the conditionals that sum_up left in the tables.
inline void draw(const Tree& tree, const double* tables, std::mt19937_64& rng, Index* rows) {
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    for (Index p = len(tree.cliques.size()); p > 0; --p) {
        const Clique& c = tree.cliques[p - 1];
        const double* column = tables + c.table + column_of(c, rows);
        double left = uniform(rng);
        Index chosen = -1;
        for (Index r = 0; r < c.rows; ++r) {
            const double probability = column[r * c.columns];
            if (probability > 0.0) {
                chosen = r;  // rounding may leave a rest: the last possible row then
                if (left < probability) break;
            }
            left -= probability;
        }
        rows[p - 1] = one_of_them(chosen);
    }
}

// The k best labellings from what max_up left, best first: rows of all variables, end to end.
//
// A labelling is found as the best one that agrees with an earlier labelling y on the variables after p and has another
// row at p (Lawler 1972). Once y itself is found, with p as its own place, the labellings not found yet are those that
// first leave y at p, with a worse row there than y's, or at a variable before p in the order. The best of each such
// set is known from T alone: it loses what T does at the place where it leaves.
inline std::vector<Index> k_best(const Tree& tree, double maximum, const double* tables, Index k) {
    const Index n = len(tree.cliques.size());
    struct Candidate {
        double value;
        Index number;  // of candidates made before it: ties go to the first
        Index like;    // the labelling that it agrees with
        Index place;   // where it leaves that
        Index row;
        bool operator<(const Candidate& o) const { return value != o.value ? value < o.value : number > o.number; }
    };
    std::vector<Index> found;
    std::priority_queue<Candidate> queue;
    Index made = 0;
    std::vector<Index> rows(n);
    const auto propose = [&](double value, Index like, Index place) {
        // The best row that comes after the present row in the order of T, then of row numbers.
        const Clique& c = tree.cliques[place];
        const double* column = tables + c.table + column_of(c, rows.data());
        const Index present = rows[place];
        const double most = column[present * c.columns];
        Index best = -1;
        for (Index r = 0; r < c.rows; ++r) {
            const double t = column[r * c.columns];
            const bool after = t < most || (t == most && r > present);
            if (after && t > kLogsOfZero && (best < 0 || t > column[best * c.columns])) best = r;
        }
        if (best >= 0) queue.push({value + column[best * c.columns] - most, made++, like, place, best});
    };
    for (Index rank = 0; rank < k; ++rank) {
        Interrupt::check_current();
        Index place = n - 1;
        double value = maximum;
        if (rank == 0) {
            choose(tree, tables, n, rows.data());
        } else {
            if (queue.empty()) break;
            const Candidate next = queue.top();
            queue.pop();
            std::copy_n(found.begin() + next.like * n, n, rows.begin());
            rows[next.place] = next.row;
            choose(tree, tables, next.place, rows.data());
            place = next.place;
            value = next.value;
        }
        found.insert(found.end(), rows.begin(), rows.end());
        for (Index p = place; p >= 0; --p) propose(value, rank, p);
    }
    return found;
}

// Expected counts of factors' entries, from joint probabilities of cliques.
inline void factors_of(const Tree& tree, const double* tables, double* factors, Workspace& ws) {
    Workspace::Frame frame(ws);
    double* scratch = frame.take(tree.local_size);
    double* separated = frame.take(tree.separated_size);
    for (const Clique& c : tree.cliques) {
        const double* table = tables + c.table;
        Collector collector(tree, c, separated, factors, scratch);
        for (Index r = 0; r < c.rows; ++r) collector.add_row(r, table + r * c.columns);
        collector.end(table);
    }
}

// The marginals of each clique's separator, summed from its parent's table; nothing is written for roots.
inline void separators_of(const Tree& tree, const double* tables, double* separated) {
    for (const Clique& c : tree.cliques) {
        Collector collector(tree, c, separated, nullptr, nullptr);
        for (Index r = 0; r < c.rows; ++r) collector.add_row(r, tables + c.table + r * c.columns);
    }
}

// The derivative of what factors_of gives after sum_up and sum_down, along `direction` (as `factors`); overwrites
// tables.
//
// With dots for derivatives: dT = direction + messages of the children, dm(s) = sum_r p(r | s) dT(r, s), and down, with
// the separator's marginals q: d(p q) = p q (dT - dm) + p dq.
inline void tangent(const Tree& tree, const double* factors, const double* direction, double* tables, double* separated,
                    double* out, Workspace& ws) {
    Workspace::Frame frame(ws);
    double* scratch = frame.take(tree.local_size);
    double* slopes = frame.take(tree.table_size);     // dT, then d(p q)
    double* moved = frame.take(tree.separated_size);  // dm, then dq
    sum_up(tree, factors, tables, separated, nullptr, ws);
    for (const Clique& c : tree.cliques) {
        Interrupt::check_current();
        double* slope = slopes + c.table;
        double* mean = moved + c.separated;
        build(tree, c, direction, moved, slope, scratch);
        const double* p = tables + c.table;
        fill(mean, c.columns, 0.0);
        for (Index r = 0; r < c.rows; ++r) {
            for (Index s = 0; s < c.columns; ++s) mean[s] += p[r * c.columns + s] * slope[r * c.columns + s];
        }
        for (Index r = 0; r < c.rows; ++r) {
            for (Index s = 0; s < c.columns; ++s) slope[r * c.columns + s] -= mean[s];
        }
    }
    for (std::size_t k = tree.cliques.size(); k > 0; --k) {
        Interrupt::check_current();
        const Clique& c = tree.cliques[k - 1];
        double* q = separated + c.separated;
        double* dq = moved + c.separated;
        if (c.parent < 0) {
            q[0] = 1.0;
            dq[0] = 0.0;
        }
        Collector probabilities(tree, c, separated, nullptr, nullptr);
        Collector changes(tree, c, moved, out, scratch);
        for (Index r = 0; r < c.rows; ++r) {
            double* p = tables + c.table + r * c.columns;
            double* slope = slopes + c.table + r * c.columns;
            for (Index s = 0; s < c.columns; ++s) {
                slope[s] = p[s] * (q[s] * slope[s] + dq[s]);
                p[s] *= q[s];
            }
            probabilities.add_row(r, p);
            changes.add_row(r, slope);
        }
        changes.end(slopes + c.table);
    }
}

}  // namespace partwise::junction
