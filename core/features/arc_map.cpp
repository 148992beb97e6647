#include "features/arc_map.h"

#include <bit>
#include <utility>

#include "support/vector_math.h"

namespace partwise {

namespace {

constexpr std::size_t kAhead = 24;
// How many words are processed between two checks for Ctrl-C.
constexpr Index kLookEvery = 16;

template <class Number>
double row_sum(const Number* members, std::size_t n, const double* values) {
    double a = 0;
    double b = 0;
    std::size_t k = 0;
    for (; k + 2 <= n; k += 2) {
        a += values[members[k]];
        b += values[members[k + 1]];
    }
    if (k < n) a += values[members[k]];
    return a + b;
}

// out[arc] = the sum of the values of the arc's rows
void spread(const ArcRows& rows, const double* values, double* out) {
    for (Index m = 1; m <= rows.n; ++m) {
        double* to = out + (m - 1) * (rows.n + 1);
        const double* pairs = values + (m - 1) * (rows.n + 1);
        for (Index h = 0; h <= rows.n; ++h) {
            const Index bin = ArcDistance::bin(h, m);
            to[h] = pairs[h] + values[rows.head(h)] + values[rows.head(h, bin)] + values[rows.modifier(m, bin)];
        }
        to[m] = 0.0;
    }
}

// The transpose of spread: adds slots[arc] to each row of the arc. Returns false if all slots are zero.
bool collect(const ArcRows& rows, const double* slots, double* values) {
    std::fill(values, values + rows.size(), 0.0);
    bool any = false;
    for (Index m = 1; m <= rows.n; ++m) {
        const double* from = slots + (m - 1) * (rows.n + 1);
        for (Index h = 0; h <= rows.n; ++h) {
            if (from[h] == 0.0 || h == m) continue;
            any = true;
            const Index bin = ArcDistance::bin(h, m);
            values[rows.pair(h, m)] = from[h];
            values[rows.head(h)] += from[h];
            values[rows.head(h, bin)] += from[h];
            values[rows.modifier(m, bin)] += from[h];
        }
    }
    return any;
}

}  // namespace

// A sentence's distinct features, and for each row the positions (members) of its features in that list.
struct ArcMap::Block {
    std::vector<std::uint32_t> ids;
    std::vector<std::uint32_t> ends;           // where each row's members end
    std::vector<std::uint16_t> small_members;  // used instead of `members` if the positions fit into 16 bits
    std::vector<std::uint32_t> members;

    // Calls f(row, first member, number of members) for every row.
    template <class F>
    void for_each_row(F&& f) const {
        const auto go = [&](const auto* all) {
            std::uint32_t begin = 0;
            for (std::size_t r = 0; r < ends.size(); ++r) {
                f(r, all + begin, std::size_t{ends[r] - begin});
                begin = ends[r];
            }
        };
        if (members.empty()) {
            go(small_members.data());
        } else {
            go(members.data());
        }
    }
    // Calls f(position in ids) for the features of an arc, row by row.
    template <class F>
    void for_each_member(const std::array<Index, 4>& rows, F&& f) const {
        const auto go = [&](const auto& all) {
            for (const Index r : rows) {
                for (std::size_t k = r > 0 ? ends[r - 1] : 0; k < ends[r]; ++k) f(std::size_t{all[k]});
            }
        };
        members.empty() ? go(small_members) : go(members);
    }
    double bytes() const {
        return static_cast<double>(sizeof(Block) + 4 * ids.size() + 4 * ends.size() + 2 * small_members.size() +
                                   4 * members.size());
    }
};

struct ArcMap::Scratch {
    std::vector<Key> keys;
    std::vector<std::uint32_t> plain_ends, plain_ids, found;
    std::vector<std::uint32_t> ends, ids;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> places;  // a hash table from ids to their positions
    std::vector<double> rows;
    std::vector<double> values;  // one value per distinct feature; zero between calls
    Block block;

    void hold(std::size_t n_features) {
        if (values.size() < n_features) values.resize(n_features, 0.0);
    }
};

ArcMap::ArcMap(std::vector<ArcTemplate> templates, std::shared_ptr<const ArcTokens> tokens,
               std::shared_ptr<const ArcIndex> index, double memory_limit, int n_jobs, Interrupt& interrupt)
    : templates_(std::move(templates)), tokens_(std::move(tokens)), index_(std::move(index)) {
    check_templates(templates_, tokens_->num_columns());
    blocks_.resize(num_examples());
    if (memory_limit <= 0) return;
    // Chunks of fixed size: the choice of the kept blocks must not depend on the number of threads.
    constexpr Index kChunk = 256;
    for (Index first = 0; first < num_examples() && cached_bytes_ <= memory_limit; first += kChunk) {
        const Index n = std::min(kChunk, num_examples() - first);
        parallel_for(n, n_jobs, interrupt, [&](Index k, int) {
            auto block = std::make_unique<Block>();
            ScratchPool<Scratch>::Lease lease(scratch_);
            make_block(first + k, *lease, *block);
            blocks_[first + k] = std::move(block);
        });
        for (Index i = first; i < first + n; ++i) {
            const double bytes = blocks_[i]->bytes();
            if (cached_bytes_ + bytes > memory_limit) {
                for (Index j = i; j < first + n; ++j) blocks_[j].reset();
                return;
            }
            cached_bytes_ += bytes;
            ++num_cached_;
        }
    }
}

ArcMap::~ArcMap() = default;

// Fills s.ids with the weights of all rows' features (without unknown ones) and s.ends with the rows' ends. One
// modifier at a time, so that its keys need little memory.
void ArcMap::look_up(Index i, Scratch& s) const {
    ArcKeys keys(templates_, *tokens_);
    keys.load(i);
    const Index n = keys.length();
    s.ends.clear();
    std::size_t used = 0;
    std::size_t k = 0;
    for (Index m = 1; m <= n; ++m) {
        if (m % kLookEvery == 0) Interrupt::check_current();
        keys.all_pairs(m, s.keys, s.plain_ends);
        s.plain_ids.resize(s.keys.size());
        index_->find(s.keys.data(), s.keys.size(), s.plain_ids.data());
        // Add the keys with direction and distance of those features whose plain key is known.
        std::size_t kept = 0;
        k = 0;
        for (Index h = 0; h <= n; ++h) {
            const Key with = keys.with_bin(ArcDistance::bin(h, m));
            for (; k < s.plain_ends[h]; ++k) {
                s.keys[kept] = s.keys[k] + with;
                s.plain_ids[kept] = s.plain_ids[k];
                kept += s.plain_ids[k] != ArcIndex::kUnknown;
            }
            s.plain_ends[h] = static_cast<std::uint32_t>(kept);
        }
        s.found.resize(kept);
        index_->find(s.keys.data(), kept, s.found.data());
        s.ids.resize(used + 2 * kept);
        k = 0;
        for (const std::uint32_t end : s.plain_ends) {
            for (; k < end; ++k) {
                s.ids[used++] = s.plain_ids[k];
                s.ids[used] = s.found[k];
                used += s.found[k] != ArcIndex::kUnknown;
            }
            s.ends.push_back(static_cast<std::uint32_t>(used));
        }
        if (used >= std::numeric_limits<std::uint32_t>::max() / 2)
            throw InputError("sentence ", i, " has too many arcs");
    }
    keys.all_others(s.keys, s.plain_ends);
    s.found.resize(s.keys.size());
    index_->find(s.keys.data(), s.keys.size(), s.found.data());
    s.ids.resize(used + s.found.size());
    k = 0;
    for (const std::uint32_t end : s.plain_ends) {
        for (; k < end; ++k) {
            s.ids[used] = s.found[k];
            used += s.found[k] != ArcIndex::kUnknown;
        }
        s.ends.push_back(static_cast<std::uint32_t>(used));
    }
    s.ids.resize(used);
}

void ArcMap::make_block(Index i, Scratch& s, Block& block) const {
    look_up(i, s);
    // Number the distinct ids in the order of their first use, and replace each id by its number.
    const std::size_t size = std::bit_ceil(2 * s.ids.size() + 1);
    s.places.assign(size, {ArcIndex::kUnknown, 0});
    block.ids.clear();
    for (std::uint32_t& id : s.ids) {
        std::size_t at = (id * std::size_t{0x9e3779b9U}) & (size - 1);
        while (s.places[at].first != id && s.places[at].first != ArcIndex::kUnknown) at = (at + 1) & (size - 1);
        if (s.places[at].first != id) {
            s.places[at] = {id, static_cast<std::uint32_t>(block.ids.size())};
            block.ids.push_back(id);
        }
        id = s.places[at].second;
    }
    block.ends = s.ends;
    block.small_members.clear();
    block.members.clear();
    if (block.ids.size() <= std::numeric_limits<std::uint16_t>::max()) {
        block.small_members.resize(s.ids.size());
        for (std::size_t k = 0; k < s.ids.size(); ++k) block.small_members[k] = static_cast<std::uint16_t>(s.ids[k]);
    } else {
        block.members = s.ids;
    }
    block.ids.shrink_to_fit();
}

const ArcMap::Block& ArcMap::block(Index i, Scratch& s) const {
    if (blocks_[i]) return *blocks_[i];
    make_block(i, s, s.block);
    return s.block;
}

void ArcMap::scores(Index i, const double* w, double* out) const {
    ScratchPool<Scratch>::Lease lease(scratch_);
    Scratch& s = *lease;
    const ArcRows rows{tokens_->length(i)};
    s.rows.resize(rows.size());
    if (const Block* kept = blocks_[i].get()) {
        const std::size_t n = kept->ids.size();
        s.hold(n);
        const std::uint32_t* __restrict ids = kept->ids.data();
        double* __restrict values = s.values.data();
        for (std::size_t k = 0; k < n; ++k) {
            if (k + kAhead < n) __builtin_prefetch(w + ids[k + kAhead]);
            values[k] = w[ids[k]];
        }
        kept->for_each_row(
            [&](std::size_t r, const auto* members, std::size_t size) { s.rows[r] = row_sum(members, size, values); });
        std::fill(values, values + n, 0.0);
    } else {
        // The sentence is used once only: finding its distinct features would take longer than it saves.
        look_up(i, s);
        std::uint32_t k = 0;
        const std::size_t n = s.ids.size();
        for (std::size_t r = 0; r < s.ends.size(); ++r) {
            // Add in the order of row_sum: scores must have the same bits whatever the memory limit.
            double a = 0;
            double b = 0;
            for (; k + 2 <= s.ends[r]; k += 2) {
                if (k + kAhead + 1 < n) {
                    __builtin_prefetch(w + s.ids[k + kAhead]);
                    __builtin_prefetch(w + s.ids[k + kAhead + 1]);
                }
                a += w[s.ids[k]];
                b += w[s.ids[k + 1]];
            }
            if (k < s.ends[r]) a += w[s.ids[k++]];
            s.rows[r] = a + b;
        }
    }
    spread(rows, s.rows.data(), out);
}

template <class Sink>
void ArcMap::visit(Index i, const double* slots, Sink&& sink) const {
    ScratchPool<Scratch>::Lease lease(scratch_);
    Scratch& s = *lease;
    const Block& b = block(i, s);
    const ArcRows rows{tokens_->length(i)};
    s.rows.resize(rows.size());
    if (!collect(rows, slots, s.rows.data())) return;
    s.hold(b.ids.size());
    double* __restrict values = s.values.data();
    b.for_each_row([&](std::size_t r, const auto* members, std::size_t size) {
        const double d = s.rows[r];
        if (d == 0.0) return;
        for (std::size_t k = 0; k < size; ++k) values[members[k]] += d;
    });
    sink(b.ids, values);
    std::fill(values, values + b.ids.size(), 0.0);
}

template <class Prefetch, class F>
void ArcMap::for_each_weight(Index i, const double* slots, Prefetch&& prefetch, F&& f) const {
    visit(i, slots, [&](const std::vector<std::uint32_t>& ids, const double* values) {
        for (std::size_t k = 0; k < ids.size(); ++k) {
            if (k + kAhead < ids.size() && values[k + kAhead] != 0.0) prefetch(ids[k + kAhead]);
            if (values[k] != 0.0) f(ids[k], values[k]);
        }
    });
}

Added ArcMap::add_transpose(Index i, const double* slots, double scale, double* w) const {
    Added added;
    const auto prefetch = [&](std::uint32_t id) { __builtin_prefetch(w + id, 1); };
    for_each_weight(i, slots, prefetch, [&](std::uint32_t id, double v) {
        added += {v * v, v * w[id]};
        w[id] += scale * v;
    });
    return added;
}

Added ArcMap::add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const {
    Shrinking<1> sums(to);
    const auto prefetch = [&](std::uint32_t id) {
        __builtin_prefetch(to.u + id, 1);
        __builtin_prefetch(to.w + id, 1);
    };
    for_each_weight(i, slots, prefetch,
                    [&](std::uint32_t id, double v) { sums.move(0, scale * v, to.u[id], to.w[id]); });
    return Added::of(sums, scale);
}

void ArcMap::append_projection(Index i, const double* slots, Index first, SparseVector& out) const {
    for_each_weight(i, slots, [](std::uint32_t) {}, [&](std::uint32_t id, double v) { out.append(first + id, &v, 1); });
}

void ArcMap::slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const {
    ScratchPool<Scratch>::Lease lease(scratch_);
    Scratch& s = *lease;
    const Block& b = block(i, s);
    const ArcRows rows{tokens_->length(i)};
    s.hold(b.ids.size());
    for (const Index slot : slots) {
        const Index m = slot / (rows.n + 1) + 1;
        const Index h = slot % (rows.n + 1);
        if (h != m) {
            const auto all = rows.of_arc(h, m);
            b.for_each_member(all, [&](std::size_t k) { s.values[k] += 1.0; });
            b.for_each_member(all,
                              [&](std::size_t k) { out.append(first + b.ids[k], std::exchange(s.values[k], 0.0)); });
        }
        out.finish_row();
    }
}

double ArcMap::transpose_norm2(Index i, const double* slots) const {
    double sum = 0;
    visit(i, slots,
          [&](const std::vector<std::uint32_t>& ids, const double* values) { sum = norm2(values, len(ids.size())); });
    return sum;
}

// Let K_f be the most that a tree can count feature f: the sum over modifiers of its largest count on one arc. For the
// difference v of two trees |v_f| <= K_f, so |v|^2 <= sum_f K_f |v_f| <= 2 sum_m max_h (sum of K_f over the arc's f).
double ArcMap::psi2_bound(Index i) const {
    ScratchPool<Scratch>::Lease lease(scratch_);
    Scratch& s = *lease;
    const Block& b = block(i, s);
    const ArcRows rows{tokens_->length(i)};
    std::vector<double> most(b.ids.size(), 0.0);       // K_f
    std::vector<double> here(b.ids.size(), 0.0);       // counts on one arc
    std::vector<double> best_here(b.ids.size(), 0.0);  // largest counts on the arcs of one modifier
    for (Index m = 1; m <= rows.n; ++m) {
        if (m % kLookEvery == 0) Interrupt::check_current();
        for (Index h = 0; h <= rows.n; ++h) {
            if (h == m) continue;
            b.for_each_member(rows.of_arc(h, m), [&](std::size_t f) {
                here[f] += 1.0;
                best_here[f] = std::max(best_here[f], here[f]);
            });
            b.for_each_member(rows.of_arc(h, m), [&](std::size_t f) { here[f] = 0.0; });
        }
        for (std::size_t f = 0; f < most.size(); ++f) {
            most[f] += best_here[f];
            best_here[f] = 0.0;
        }
    }
    double sum = 0;
    for (Index m = 1; m <= rows.n; ++m) {
        double largest = 0;
        for (Index h = 0; h <= rows.n; ++h) {
            if (h == m) continue;
            double total = 0;
            b.for_each_member(rows.of_arc(h, m), [&](std::size_t f) { total += most[f]; });
            largest = std::max(largest, total);
        }
        sum += largest;
    }
    return 2.0 * sum;
}

// Each template makes two features of an arc; a `between` template makes two per word between head and modifier.
Index ArcMap::most_features(Index n) const {
    Index most = 0;
    for (const ArcTemplate& t : templates_) most += t.between < 0 ? 2 : 2 * n;
    return most;
}

// A tree has one arc per word. The bound of `psi2_bound` is tighter, but takes as long as a pass.
double ArcMap::reach(Index i) const {
    const Index n = tokens_->length(i);
    return static_cast<double>(n) * std::sqrt(static_cast<double>(most_features(n)));
}

Index ArcMap::row_length() const {
    Index longest = 0;
    for (Index i = 0; i < num_examples(); ++i) longest = std::max(longest, tokens_->length(i));
    return most_features(longest);
}

double ArcMap::features_per_arc() const {
    Index features = 0;
    Index arcs = 0;
    ScratchPool<Scratch>::Lease lease(scratch_);
    Scratch& s = *lease;
    for (Index i = 0; i < num_examples(); ++i) {
        const ArcRows rows{tokens_->length(i)};
        arcs += rows.n * rows.n;
        look_up(i, s);
        for (Index m = 1; m <= rows.n; ++m) {
            for (Index h = 0; h <= rows.n; ++h) {
                if (h == m) continue;
                for (const Index r : rows.of_arc(h, m)) features += s.ends[r] - (r > 0 ? s.ends[r - 1] : 0);
            }
        }
    }
    return arcs > 0 ? static_cast<double>(features) / static_cast<double>(arcs) : 0.0;
}

}  // namespace partwise
