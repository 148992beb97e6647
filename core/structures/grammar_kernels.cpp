// Sums and maxima over the derivations of a sentence, by hand.

#include "structures/grammar_chart.h"
#include "structures/numbers.h"

namespace partwise::grammar {

namespace {

// Values of spans are kept in this range. A product of two of them that is below 1e-308 counts as 0; with the weights
// of split, rule and gold, each at most exp(kHigh), it is below 1e-294. There are fewer than 1e6 of them in a span, and
// they are missing in a sum of at least kLeast: that is nothing. Slopes are at most 1 / kLeast, and a probability that
// is lost is at most kMost * 1e-308.
constexpr double kLeast = 1e-275;
constexpr double kMost = 1e250;
constexpr double kHigh = 10.0;
constexpr double kLow = -500.0;
// A power of two that weights of words are multiplied by in all. Powers of two are exact: a factor exp(300) would round
// log Z as if scores were that large.
constexpr Index kRoom = 432;

// Weights exp(score - shift) of all slots that derivations have, and the sum of shifts of a derivation. A derivation
// has one slot of each word, one of each row of splits, and n - 1 of each other table.
class Weights {
   public:
    Weights(const Sentence& x, const double* scores, double centre, Workspace::Frame& frame)
        : x_(x), at_(x.slots()), scores_(scores), out_(frame.take(at_.count())) {
        const Index n = x.n;
        const Rules& g = x.g;
        const auto parts = static_cast<double>(n - 1);
        fill(out_, at_.count(), 0.0);
        shift_ += parts * table(0, 1, g.size(), g.size(), true);
        shift_ += parts * table(g.size(), n, g.start.count, g.start.width, everywhere(g.start));
        for (Index q = 1; q < n; ++q)
            shift_ += table(at_.split(0, q), 1, g.split.count, g.split.width, everywhere(g.split));
        shift_ += parts * table(at_.ends(), n, g.end.count, g.end.width, everywhere(g.end));
        shift_ += parts * table(at_.spans(), n_spans(n), g.span.count, g.span.width, everywhere(g.span));
        if (x.has_gold) shift_ += parts * table(at_.other(), 1, n, n, true);
        // What is taken off each word, so that a derivation near `centre` has a weight near 1.
        const double more = (centre - shift_) / static_cast<double>(n);
        for (Index s = 0; s < n; ++s) shift_ += words(s, more);
    }

    const double* data() const { return out_; }
    bool in_range = true;

    // log of the sum over derivations of scores whose sum over derivations of weights is z.
    double log_sum(double z) const {
        const double scaled = std::ldexp(z, -power_);
        const bool normal = scaled >= std::numeric_limits<double>::min();
        return (normal ? std::log(scaled) : std::log(z) - power_ * std::log(2.0)) + shift_;
    }

   private:
    // Whether every symbol with a rule has a column: only then do all derivations have n - 1 slots of the table.
    bool everywhere(const Columns& columns) const {
        if (columns.count == 0) return true;
        for (const Index a : x_.g.parent) {
            if (columns[a] == kNone) return false;
        }
        return true;
    }
    void set(Index slot, double score, int power) {
        if (scores_[slot] == -kInfinity) return;
        out_[slot] = std::ldexp(fast_exp(score), power);
        in_range = in_range && score < -kLow && score > kLow;
    }
    double table(Index first, Index rows, Index columns, Index width, bool shifted) {
        double high = -kInfinity;
        for (Index row = 0; row < rows; ++row) {
            const double* own = scores_ + first + row * width;
            for (Index c = 0; c < columns; ++c) high = std::max(high, own[c]);
        }
        if (!shifted || high == -kInfinity) high = 0.0;
        for (Index row = 0; row < rows; ++row) {
            const double* own = scores_ + first + row * width;
            double* out = out_ + first + row * width;
            bool near = true;
            for (Index c = 0; c < columns; ++c) {
                const double score = own[c] - high;
                out[c] = fast_exp(score);
                near = near && ((score > kLow && score < kHigh) || own[c] == -kInfinity);
            }
            in_range = in_range && near;
        }
        return high;
    }
    double words(Index s, double centre) {
        double high = -kInfinity;
        for (Index k = 0; k < x_.n_columns(s); ++k) high = std::max(high, scores_[at_.word(x_.column(s, k), s)]);
        if (high == -kInfinity) high = 0.0;
        // All weights but those of words are at most 1, so that the room above 1 is theirs.
        const bool first = std::isnan(centre);
        const double taken = first ? high : centre;
        const int power = first ? static_cast<int>(kRoom * (s + 1) / x_.n - kRoom * s / x_.n) : 0;
        power_ += power;
        for (Index k = 0; k < x_.n_columns(s); ++k) {
            const Index slot = at_.word(x_.column(s, k), s);
            set(slot, scores_[slot] - taken, power);
        }
        return taken;
    }

    const Sentence& x_;
    const Slots at_;
    const double* scores_;
    double* out_;
    double shift_ = 0;
    int power_ = 0;
};

// Symbols with a smaller probability are skipped: it is far below the rounding error of probabilities that sum to 1.
constexpr double kNothing = 1e-40;

// Expected counts, from the whole sentence down. The slope of a value is the derivative of log Z by it; value times
// slope is the probability of the symbol over the span.
class Outside {
   public:
    Outside(Chart<Product>& chart, double z, double* marginals, Workspace::Frame& frame)
        : chart_(chart), g_(chart.g), at_(chart.at), n_(chart.n), marginals_(marginals) {
        slope_ends_ = frame.zeros(chart.size());
        slope_begins_ = frame.zeros(chart.size());
        inner_ = frame.zeros(g_.n_symbols);
        split_mass_ = frame.zeros((g_.split.count + 1) * (n_ + 1));
        fill(marginals, at_.count(), 0.0);
        for (const Index a : g_.roots) {
            if (chart.value(a, 0, n_) > 0.0) ends(0, a)[n_] = 1.0 / z;
        }
    }

    void run() {
        for (Index t = n_; t >= 1; --t) {
            if (t % 4 == 0) Interrupt::check_current();
            for (Index s = 0; s < t - 1; ++s) {
                if (!nodes(s, t)) continue;
                rules(s, t);
                for (const Index a : found_) inner_[a] = 0.0;
            }
            words(t - 1);
        }
        for (Index c = 0; c < g_.split.count; ++c) {
            for (Index q = 1; q < n_; ++q) marginals_[at_.split(c, q)] = split_mass_[c * (n_ + 1) + q];
        }
        if (chart_.x.has_gold) marginals_[at_.other()] += all_other_;
    }

   private:
    double* ends(Index s, Index a) { return slope_ends_ + chart_.ends_at(s, a); }
    double* begins(Index t, Index a) { return slope_begins_ + chart_.begins_at(t, a); }

    // Writes the slope of each symbol's sum over its rules to inner_; returns false if no symbol has a probability.
    bool nodes(Index s, Index t) {
        found_.clear();
        for (const Index a : chart_.symbols()) {
            const double slope = ends(s, a)[t] + begins(t, a)[s];
            const double mass = slope * chart_.value(a, s, t);
            if (!(mass > kNothing)) continue;
            const Slots::OfNode own = at_.of_node(a, s, t);
            for (Index k = 0; k < own.count; ++k) marginals_[own.slots[k]] += mass;
            inner_[a] = slope * chart_.node(a, s, t);
            found_.push_back(a);
        }
        return !found_.empty();
    }

    void rules(Index s, Index t) {
        const Index gold = chart_.x.gold_at(s, t);
        const Index apart = gold == kNone ? kNone : chart_.x.gold[gold].rule;
        for (const Index b : chart_.active(s)) {
            const Rules::ByLeft* end = g_.by_left.data() + g_.first_by_left[b + 1];
            for (const Rules::ByLeft* r = g_.by_left.data() + g_.first_by_left[b]; r < end; ++r) {
                const double inner = inner_[r->parent];
                if (inner == 0.0) continue;
                const Chart<Product>::Range range = chart_.splits(b, r->right, s, t);
                if (range.first > range.last) continue;
                if (r->rule == apart) {
                    gold_rule(gold, inner, range);
                } else if (chart_.rule(r->rule) != 0.0) {
                    const double sum = spread(*r, b, s, t, inner * chart_.rule(r->rule), range);
                    marginals_[r->rule] += sum;
                    all_other_ += sum;
                }
            }
        }
    }

    // Adds a rule's contribution at these splits to the slopes of its symbols; returns the rule's probability.
    double spread(const Rules::ByLeft& r, Index b, Index s, Index t, double w, Chart<Product>::Range range) {
        const double* __restrict left = chart_.ends(s, b);
        const double* __restrict right = chart_.begins(t, r.right);
        const double* __restrict split = chart_.split_row(r.parent);
        double* __restrict to_left = ends(s, b);
        double* __restrict to_right = begins(t, r.right);
        const Index c = g_.split[r.parent];
        double* __restrict to_split = split_mass_ + (c == kNone ? g_.split.count : c) * (n_ + 1);
        double sum = 0;
        for (Index q = range.first; q <= range.last; ++q) {
            const double x = w * split[q];
            to_left[q] += x * right[q];
            to_right[q] += x * left[q];
            const double mass = x * left[q] * right[q];
            to_split[q] += mass;
            sum += mass;
        }
        return sum;
    }

    // The gold rule k: at its own split it uses the slot gold(k), at other splits `other`.
    void gold_rule(Index k, double inner, Chart<Product>::Range range) {
        const Anchored& y = chart_.x.gold[k];
        const Rules::ByLeft r{static_cast<std::int32_t>(g_.right[y.rule]), static_cast<std::int32_t>(g_.parent[y.rule]),
                              static_cast<std::int32_t>(y.rule)};
        for (Index q = range.first; q <= range.last; ++q) {
            const Index slot = q == y.q ? at_.gold(k) : at_.other();
            const double w = inner * chart_.weights[y.rule] * chart_.weights[slot];
            const double mass = spread(r, g_.left[y.rule], y.s, y.t, w, {q, q});
            marginals_[y.rule] += mass;
            marginals_[slot] += mass;
        }
    }

    void words(Index s) {
        for (Index k = 0; k < chart_.x.n_columns(s); ++k) {
            const Index c = chart_.x.column(s, k);
            const Index a = g_.word_symbol[c];
            const double value = chart_.value(a, s, s + 1);
            if (value > 0.0) marginals_[at_.word(c, s)] = value * (ends(s, a)[s + 1] + begins(s + 1, a)[s]);
        }
    }

    Chart<Product>& chart_;
    const Rules& g_;
    const Slots at_;
    const Index n_;
    double* const marginals_;
    double* slope_ends_;
    double* slope_begins_;
    double* inner_;
    double* split_mass_;
    double all_other_ = 0;
    std::vector<Index> found_;
};

bool sums_around(const Sentence& sentence, const double* scores, double centre, double* marginals, double* entropy,
                 double& log_z, Workspace& ws) {
    Workspace::Frame frame(ws);
    const Weights weights(sentence, scores, centre, frame);
    if (!weights.in_range) return false;
    Chart<Product> chart(sentence, weights.data(), frame);
    bool in_range = true;
    chart.inside(
        [&](double before, double after) {
            in_range = in_range && before >= kLeast && before <= kMost && after >= kLeast && after <= kMost;
        },
        [&](const double* left, const double* right, const double* split, Index n) {
            for (Index k = 0; k < n; ++k) in_range = in_range && !(left[k] > 0.0 && right[k] > 0.0 && split[k] > 0.0);
        });
    double z = 0;
    for (const Index a : sentence.g.roots) z += chart.value(a, 0, sentence.n);
    if (!in_range || z == 0.0) return false;
    log_z = weights.log_sum(z);
    if (!marginals && !entropy) return true;
    const Index n_slots = sentence.slots().count();
    if (!marginals) marginals = frame.take(n_slots);
    Outside(chart, z, marginals, frame).run();
    if (entropy) *entropy = entropy_of_sums(log_z, marginals, scores, n_slots);
    return true;
}

// Follows the best derivation from the top.
void read_off(Chart<Maximum>& chart, Index root, std::vector<Index>& slots) {
    const Rules& g = chart.g;
    struct Node {
        Index a, s, t;
    };
    std::vector<Node> stack{{root, 0, chart.n}};
    while (!stack.empty()) {
        const auto [a, s, t] = stack.back();
        stack.pop_back();
        if (t == s + 1) {
            slots.push_back(chart.at.word(g.word[a], s));
            continue;
        }
        const Index gold = chart.x.gold_at(s, t);
        double best = -kInfinity;
        Anchored chosen{kNone, s, kNone, t};
        for (Index r = g.first[a]; r < g.first[a + 1]; ++r) {
            const auto range = chart.splits(g.left[r], g.right[r], s, t);
            const bool has_gold = gold != kNone && chart.x.gold[gold].rule == r;
            for (Index q = range.first; q <= range.last; ++q) {
                const bool is_gold = has_gold && chart.x.gold[gold].q == q;
                const double rule = is_gold ? chart.weights[r] + chart.weights[chart.at.gold(gold)] : chart.rule(r);
                const double value = rule + chart.pair({r, s, q, t}, q);
                if (value > best) {
                    best = value;
                    chosen.rule = r;
                    chosen.q = q;
                }
            }
        }
        chart.x.add_slots(chosen, slots);
        stack.push_back({g.right[chosen.rule], chosen.q, t});
        stack.push_back({g.left[chosen.rule], s, chosen.q});
    }
}

double best_root(Chart<Maximum>& chart, Index& root) {
    chart.inside([](double, double) {}, [](const double*, const double*, const double*, Index) {});
    double best = -kInfinity;
    for (const Index a : chart.g.roots) {
        if (chart.value(a, 0, chart.n) > best) {
            best = chart.value(a, 0, chart.n);
            root = a;
        }
    }
    return best;
}

}  // namespace

bool plain_sums(const Sentence& sentence, const double* scores, double* marginals, double* entropy, double& log_z,
                Workspace& ws) {
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    if (sums_around(sentence, scores, unknown, marginals, entropy, log_z, ws)) return true;
    // The best derivation's score as the centre.
    double centre = 0;
    {
        Workspace::Frame frame(ws);
        Chart<Maximum> chart(sentence, scores, frame);
        Index root = kNone;
        centre = best_root(chart, root);
    }
    if (centre == -kInfinity) return false;
    return sums_around(sentence, scores, centre, marginals, entropy, log_z, ws);
}

bool best_derivation(const Sentence& sentence, const double* scores, std::vector<Index>& slots, Workspace& ws) {
    Workspace::Frame frame(ws);
    Chart<Maximum> chart(sentence, scores, frame);
    Index root = kNone;
    if (best_root(chart, root) == -kInfinity) return false;
    read_off(chart, root, slots);
    return true;
}

}  // namespace partwise::grammar
