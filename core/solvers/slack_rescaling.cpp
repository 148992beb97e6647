#include "solvers/slack_rescaling.h"

#include "solvers/sum_examples.h"
#include "support/vector_math.h"

namespace partwise {

namespace {

// Costs are treated as multiples of a unit if they are multiples up to this relative error.
constexpr double kIntegral = 1e-9;

struct Corner {
    double m = 0;
    double c = 0;

    double product() const { return c * (1.0 + m); }
};

class SlackOracle {
   public:
    // scores: theta; cost: kappa c. `labelling` is the best found so far: first the gold one, of product 0.
    SlackOracle(const Objective& objective, Index i, const double* scores, const double* cost, Workspace& ws)
        : structure_(objective.structure()),
          i_(i),
          n_(objective.num_slots(i)),
          scores_(scores),
          cost_(cost),
          gold_score_(objective.dot_gold(i, scores)),
          unit_(unit(cost, n_)),
          ws_(ws) {
        const SlotView gold = objective.gold(i);
        labelling.slots.assign(gold.slots.begin(), gold.slots.end());
        labelling.counts.assign(gold.counts.begin(), gold.counts.end());
    }

    SlotCounts labelling;
    double found = 0;  // the product of `labelling`
    double bound = 0;  // at least the product of any labelling

    double cost_of_found() const { return best_.c; }

    void search() {
        const Corner high = ask(1.0, 0.0);
        const Corner costly = ask(0.0, 1.0);
        // No labelling has a larger c or a larger m than these, so the search region is the box that they span.
        explore(high, costly, {high.m, costly.c});
        if (structure_.capabilities() & kKBest) {
            for (Edge& edge : edges_) look_below(edge);
        }
        bound = found;
        for (const Edge& edge : edges_) bound = std::max(bound, edge.bound);
    }

   private:
    // Two neighbouring corners of the hull, and a bound of the products of labellings with costs between theirs.
    struct Edge {
        Corner left;
        Corner right;
        double bound;
    };

    // The labelling with the largest alpha m + lambda c.
    Corner ask(double alpha, double lambda) {
        ++calls_;
        Workspace::Frame frame(ws_);
        structure_.maximize(i_, mixed(frame, alpha, lambda), answer_, ws_);
        return consider(answer_);
    }

    double* mixed(Workspace::Frame& frame, double alpha, double lambda) const {
        double* out = frame.take(n_);
        for (Index r = 0; r < n_; ++r) out[r] = alpha * scores_[r] + lambda * cost_[r];
        return out;
    }

    // The point (m, c) of a labelling; the labelling is kept if its product is the best so far.
    Corner consider(const SlotCounts& y) {
        Corner corner{-gold_score_, 0.0};
        for (std::size_t k = 0; k < y.slots.size(); ++k) {
            corner.m += y.counts[k] * scores_[y.slots[k]];
            corner.c += y.counts[k] * cost_[y.slots[k]];
        }
        if (corner.product() > found) {
            found = corner.product();
            best_ = corner;
            labelling = y;
        }
        return corner;
    }

    // Looks at labellings below an edge of the hull, in the order of their distance from it: all labellings except the
    // k nearest lie below the line, parallel to the edge, through the k-th.
    void look_below(Edge& edge) {
        const double alpha = edge.right.c - edge.left.c;
        const double lambda = edge.left.m - edge.right.m;
        if (!(alpha > 0.0) || !(lambda > 0.0)) return;
        for (Index k = 4; k <= kSlackBest && edge.bound > found; k *= 4) {
            Workspace::Frame frame(ws_);
            const auto nearest = structure_.k_best(i_, mixed(frame, alpha, lambda), k, ws_);
            Corner last;
            for (const Scored& scored : nearest) last = consider(scored.labelling);
            if (len(nearest.size()) < k) {
                edge.bound = found;
                return;
            }
            const double level = alpha * last.m + lambda * last.c;
            const auto on_line = [&](double c) { return Corner{(level - lambda * c) / alpha, c}; };
            edge.bound = std::min(edge.bound, edge_bound(on_line(edge.left.c), on_line(edge.right.c)));
        }
    }

    // Finds the hull between two of its corners. All labellings with costs between those of `left` (larger m) and
    // `right` (larger c) lie below the line from left to `tip` and below the line from tip to right.
    void explore(const Corner& left, const Corner& right, const Corner& tip) {
        const double over = std::max(edge_bound(left, tip), edge_bound(tip, right));
        if (over <= found) return;
        const double alpha = right.c - left.c;
        const double lambda = left.m - right.m;
        if (!(alpha > 0.0) || !(lambda > 0.0)) return;  // same cost or same m: the tip is one of the two
        if (calls_ >= kSlackCalls) {
            edges_.push_back({left, right, over});
            return;
        }
        const Corner corner = ask(alpha, lambda);
        const double level = alpha * left.m + lambda * left.c;
        const double rise = alpha * corner.m + lambda * corner.c - level;
        const double noise = 1e-12 * (std::abs(alpha * left.m) + std::abs(lambda * left.c) + alpha + lambda);
        if (rise <= noise) {  // no labelling lies above the edge: it is part of the hull
            edges_.push_back({left, right, edge_bound(left, right)});
            return;
        }
        // Several labellings may have the largest cost (or m); the corner found first was then not the best of them.
        if (corner.c >= right.c) return explore(left, corner, {tip.m, corner.c});
        if (corner.m >= left.m) return explore(corner, right, {corner.m, tip.c});
        // The new tips: the old lines' intersections with the line through the corner parallel to the edge.
        explore(left, corner, meet(left, tip, corner, {corner.m - lambda, corner.c + alpha}));
        explore(corner, right, meet(tip, right, corner, {corner.m - lambda, corner.c + alpha}));
    }

    // The largest product of a point under the line from a to b, with a cost between those of a and b.
    double edge_bound(const Corner& a, const Corner& b) const {
        const double low = std::min(a.c, b.c);
        const double high = std::max(a.c, b.c);
        if (high - low <= kIntegral * (1.0 + high)) return std::max(0.0, high * (1.0 + std::max(a.m, b.m)));
        const double slope = (b.m - a.m) / (b.c - a.c);
        const auto product = [&](double c) { return c * (1.0 + a.m + slope * (c - a.c)); };
        // The product on the line is c (k + slope c), with k = 1 + a.m - slope a.c.
        const double k = 1.0 + a.m - slope * a.c;
        const double top = slope < 0.0 ? std::clamp(-k / (2.0 * slope), low, high) : high;
        if (unit_ == 0.0) return std::max({0.0, product(top), product(low), product(high)});
        const double below = std::floor(top / unit_ + kIntegral) * unit_;
        double best = std::max({0.0, product(low), product(high)});
        for (const double c : {below, below + unit_}) {
            if (c >= low && c <= high) best = std::max(best, product(c));
        }
        return best;
    }

    // The intersection of the line through a and b with the line through p and q.
    static Corner meet(const Corner& a, const Corner& b, const Corner& p, const Corner& q) {
        const double am = b.m - a.m;
        const double ac = b.c - a.c;
        const double pm = q.m - p.m;
        const double pc = q.c - p.c;
        const double determinant = am * pc - ac * pm;
        if (determinant == 0.0) return {std::max(a.m, b.m), std::max(a.c, b.c)};
        const double t = ((p.m - a.m) * pc - (p.c - a.c) * pm) / determinant;
        return {a.m + t * am, a.c + t * ac};
    }

    // The smallest positive cost, if all costs are multiples of it, else 0.
    static double unit(const double* cost, Index n) {
        double least = kInfinity;
        for (Index r = 0; r < n; ++r) {
            if (cost[r] > 0.0) least = std::min(least, cost[r]);
        }
        if (least == kInfinity) return 0.0;
        for (Index r = 0; r < n; ++r) {
            const double times = cost[r] / least;
            if (std::abs(times - std::round(times)) > kIntegral) return 0.0;
        }
        return least;
    }

    const Structure& structure_;
    Index i_;
    Index n_;
    const double* scores_;
    const double* cost_;
    double gold_score_;
    double unit_;
    Workspace& ws_;
    SlotCounts answer_;
    Corner best_;
    std::vector<Edge> edges_;
    int calls_ = 0;
};

}  // namespace

Plane slack_plane(const Objective& o, const double* w, bool with_u, int n_jobs, Interrupt& interrupt) {
    if (o.loss().temperature != 0.0 || !o.loss().link.fixed_mass())
        throw InputError("slack rescaling needs temperature 0 and the identity link");
    return sum_examples(o, n_jobs, interrupt, with_u, [&](Index i, double* direction, Workspace& ws) {
        const Index n = o.num_slots(i);
        Workspace::Frame frame(ws);
        double* scores = frame.take(n);
        double* cost = frame.take(n);
        o.features().scores(i, w, scores);
        o.costs(i, cost);
        SlackOracle oracle(o, i, scores, cost, ws);
        oracle.search();
        const double c = oracle.cost_of_found();
        if (with_u) {
            fill(direction, n, 0.0);
            o.add_gold(i, c, direction);
            oracle.labelling.view().add_to(direction, -c);
        }
        return Term{oracle.bound, c, oracle.found};
    });
}

double largest_cost(const Objective& o, int n_jobs, Interrupt& interrupt) {
    std::vector<double> found(o.num_examples(), 0.0);
    sum_examples(o, n_jobs, interrupt, false, [&](Index i, double*, Workspace& ws) {
        Workspace::Frame frame(ws);
        double* cost = frame.take(o.num_slots(i));
        SlotCounts answer;
        o.costs(i, cost);
        found[i] = o.structure().maximize(i, cost, answer, ws);
        return Term{};
    });
    return *std::max_element(found.begin(), found.end());
}

}  // namespace partwise
