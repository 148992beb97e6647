#include "solvers/eg.h"

#include <barrier>
#include <mutex>
#include <sstream>
#include <unordered_map>

#include "solvers/dual_weights.h"
#include "support/vector_math.h"

namespace partwise {

namespace {

// All batches of a pass as one data set: examples are numbered through the batches, and `find` locates their state.
class EgBatches {
   public:
    explicit EgBatches(std::span<const EgState> states) : states_(states) {
        for (const EgState& state : states) {
            first_.push_back(num_examples_);
            num_examples_ += state.objective.num_examples();
            total_slots_ += state.objective.total_slots();
        }
    }

    struct Place {
        const EgState& state;
        Index i;  // example number within the batch
    };
    Place find(Index example) const {
        if (states_.size() == 1) return {states_[0], example};
        const auto after = std::upper_bound(first_.begin(), first_.end(), example);
        const auto k = static_cast<std::size_t>(after - first_.begin()) - 1;
        return {states_[k], example - first_[k]};
    }

    Index num_examples() const { return num_examples_; }
    Index total_slots() const { return total_slots_; }
    const FeatureMap& features() const { return states_[0].objective.features(); }
    double* weights() const { return states_[0].weights; }
    double* plane() const { return states_[0].plane; }
    int jobs(int n_jobs) const {
        for (const EgState& state : states_) n_jobs = state.objective.jobs(n_jobs);
        return n_jobs;
    }

   private:
    std::span<const EgState> states_;
    std::vector<Index> first_;  // number of each batch's first example
    Index num_examples_ = 0;
    Index total_slots_ = 0;
};

// Relative error of a dot product of a few hundred slots.
constexpr double kRounding = 16 * std::numeric_limits<double>::epsilon();

struct Update {  // one lane's change of an example, which other lanes repeat and which can be undone
    Index example = 0;
    double omega = 0;
    Added added;  // result of adding A'd to the lane's own weights
    double gain = 0;
    double old_entropy = 0;
    std::vector<double> d;
    std::vector<double> old_scores;
};

class Lane {
   public:
    Lane(const EgBatches& batches, const EgOptions& options, Interrupt& interrupt)
        : batches_(batches), options_(options), interrupt_(interrupt) {}

    EgReport report;

    // Visits an example with these weights. The change is stored in `record` unless that is null.
    bool visit(Index example, const DualWeights& weights, Update* record) {
        const auto [state, i] = batches_.find(example);
        const Objective& objective = state.objective;
        const double omega = objective.weight(i);
        if (omega == 0.0) return false;
        const Index n = objective.num_slots(i);
        const double tau = options_.temperature.value_or(objective.loss().temperature);
        double* __restrict scores = state.scores + objective.offset(i);
        double* __restrict marginals = state.marginals + objective.offset(i);
        Workspace::Frame frame(ws_);
        double* __restrict target = frame.take(n);  // slot scores with costs, theta + kappa c
        double* __restrict trial = frame.take(n);
        double* __restrict mu = frame.take(n);
        double* __restrict d = frame.take(n);
        objective.features().scores(i, weights.w, target);
        objective.add_cost(i, objective.loss().cost_scale, target);

        double eta = std::min(state.step_sizes[i], options_.max_step);
        // With steps up to this the dual cannot fall (Collins et al. 2008, equation 19). Set when a step is refused.
        double safe_step = 0;
        for (;;) {
            interrupt_.check();
            ++report.visits;
            const double keep = 1.0 - eta * tau;
            for (Index r = 0; r < n; ++r) trial[r] = keep * scores[r] + eta * target[r];
            double entropy = 0;
            objective.structure().log_partition(i, trial, 1.0, mu, &entropy, ws_);
            for (Index r = 0; r < n; ++r) d[r] = marginals[r] - mu[r];
            // Make the step first, because |A'd|^2 is computed with it; undo it in the rare case that it is refused.
            const Added added = weights.move(objective.features(), i, d, omega);
            const double entropy_change = tau * (state.entropies[i] - entropy);
            const double linear = dot(target, d, n);
            const double quadratic = 0.5 * omega / options_.l2 * added.norm2;
            const double change = entropy_change + linear + quadratic;
            // A change below this is rounding: its parts are differences of larger sums.
            const double noise = 1e-13 * (1.0 + tau * (state.entropies[i] + entropy) + std::abs(linear) + quadratic);
            // The entropy is computed as log Z - <mu, s>. Near a single labelling these parts are much larger than the
            // entropy: refusing steps for their rounding would halve the step size until the example no longer moves.
            const auto rounding = [&] {
                return kRounding * tau * (std::abs(dot(mu, trial, n)) + std::abs(dot(marginals, scores, n)));
            };
            // If the change overflows with this step size, it may be finite with a smaller one.
            const bool finite = std::isfinite(change);
            if (options_.adaptive && !(eta <= safe_step) &&
                (!finite || (!(change <= noise) && !(change <= noise + rounding())))) {
                ++report.rejected;
                safe_step = 1.0 / (tau + omega / options_.l2 * objective.features().psi2_bound(i));
                const Added back = weights.move(objective.features(), i, d, -omega);
                // Halving ends at the safe step, so that must be positive. Weights that are NaN would stay NaN.
                const bool lost = objective.features().explicit_weights() && !std::isfinite(back.dot);
                if (!(safe_step > 0.0) || lost) not_finite(example);
                eta = std::max(0.5 * eta, std::min(safe_step, options_.max_step));
                continue;
            }
            if (!finite) not_finite(example);
            const double gain = -omega * change;
            report.dual_gain += gain;
            if (record) {
                record->example = example;
                record->omega = omega;
                record->added = added;
                record->gain = gain;
                record->old_entropy = state.entropies[i];
                record->d.assign(d, d + n);
                record->old_scores.assign(scores, scores + n);
            }
            copy(trial, scores, n);
            copy(mu, marginals, n);
            state.entropies[i] = entropy;
            if (options_.adaptive) state.step_sizes[i] = std::min(eta * options_.growth, options_.max_step);
            return true;
        }
    }

    // Adds an update (sign 1) to another copy of the weights, or subtracts it (sign -1).
    Added follow(const Update& update, double sign, const DualWeights& weights) const {
        const auto [state, i] = batches_.find(update.example);
        return weights.move(state.objective.features(), i, update.d.data(), sign * update.omega);
    }

    void undo(const Update& update) {
        const auto [state, i] = batches_.find(update.example);
        const Index n = state.objective.num_slots(i);
        copy(update.old_scores.data(), state.scores + state.objective.offset(i), n);
        axpy(1.0, update.d.data(), state.marginals + state.objective.offset(i), n);
        state.entropies[i] = update.old_entropy;
    }

   private:
    [[noreturn]] void not_finite(Index example) const {
        const auto [state, i] = batches_.find(example);
        std::ostringstream out;
        out << "eg: the dual's change at example " << example
            << " is not finite in double precision: its sample weight is " << state.objective.weight(i) << ", l2 "
            << options_.l2 << ", its squared features up to " << state.objective.features().psi2_bound(i)
            << ", the step size " << state.step_sizes[i];
        throw NumberError(out.str());
    }

    const EgBatches& batches_;
    EgOptions options_;
    Interrupt& interrupt_;
    Workspace ws_;
};

// The rounds of several lanes (see eg.h). Each lane has a copy of the weights, and every copy sees a fixed sequence of
// additions, so the result depends only on the seed and the number of lanes. Lane 0 sums the true change of the dual.
class Rounds {
   public:
    Rounds(const EgBatches& batches, std::span<const Index> order, const EgOptions& options, Interrupt& interrupt)
        : order_(order),
          batches_(batches),
          interrupt_(interrupt),
          options_(options),
          n_lanes_(options.n_jobs),
          round_(options.round_size),
          sync_(n_lanes_, EndOfPhase{this}) {
        const Index d = batches.features().num_weights();
        for (int k = 0; k < n_lanes_; ++k) {
            lanes_.push_back(std::make_unique<Lane>(batches, options, interrupt));
            copies_.emplace_back();
            planes_.emplace_back();
            if (k > 0) copies_.back().assign(batches.weights(), batches.weights() + d);
            if (k > 0 && batches.plane()) planes_.back().assign(batches.plane(), batches.plane() + d);
            updates_.emplace_back(round_ * n_lanes_);
        }
        counts_.assign(n_lanes_, 0);
        plan_.resize(n_lanes_);
    }

    EgReport run() {
        make_plan();
        run_together(n_lanes_, interrupt_, [&](int k) { lane(k); });
        if (error_) std::rethrow_exception(error_);
        EgReport& alone = lanes_[0]->report;
        alone.dual_gain = gain_;
        for (Index k = begin_; k < len(order_.size()); ++k) lanes_[0]->visit(order_[k], weights(0), nullptr);
        EgReport total{0, 0, alone.dual_gain, n_lanes_, rounds_, taken_back_};
        for (const auto& lane : lanes_) {
            total.visits += lane->report.visits;
            total.rejected += lane->report.rejected;
        }
        return total;
    }

   private:
    // A single lane takes over if, after kFewRounds rounds, more than 1 / kOften of the rounds were undone.
    static constexpr Index kFewRounds = 16;
    static constexpr Index kOften = 4;

    // Facts that all lanes must agree on are computed between two phases, while all lanes wait.
    struct EndOfPhase {
        Rounds* rounds;
        void operator()() noexcept { rounds->failed_ = rounds->error_ != nullptr; }
    };

    DualWeights weights(int k) {
        const auto own = static_cast<std::size_t>(k);
        return {options_.l1, options_.l2, k == 0 ? batches_.weights() : copies_[own].data(),
                k == 0 ? batches_.plane() : planes_[own].data()};
    }
    std::span<Update> updates(int k) { return std::span(updates_[k]).first(counts_[k]); }

    // Assigns the examples of the round that starts at begin_ to lanes. An example that is drawn twice stays in one
    // lane.
    void make_plan() {
        for (auto& list : plan_) list.clear();
        owner_.clear();
        const Index end = std::min(begin_ + round_ * n_lanes_, len(order_.size()));
        for (Index k = begin_; k < end; ++k) {
            const auto [it, fresh] = owner_.try_emplace(order_[k], static_cast<int>((k - begin_) % n_lanes_));
            plan_[it->second].push_back(order_[k]);
        }
        begin_ = end;
    }

    // Runs lane k. A round has several phases; in each, a lane writes only what no other lane reads.
    void lane(int k) noexcept {
        for (;;) {
            if (!phase([&] { visit_all(k); })) return;
            const bool good = phase([&] {
                follow_others(k);
                if (k != 0) return;
                settle();
                if (!worse_ && !last_) make_plan();
            });
            if (!good) return;
            if (worse_) {
                const bool back = phase([&] {
                    take_back(k);
                    if (k == 0 && !last_) make_plan();
                });
                if (!back) return;
            }
            if (last_) return;
        }
    }

    // Does the lane's part of a phase and waits for the other lanes. Returns false if a lane failed.
    template <class F>
    bool phase(F&& f) noexcept {
        try {
            f();
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!error_) error_ = std::current_exception();
        }
        sync_.arrive_and_wait();
        return !failed_;
    }

    void visit_all(int k) {
        auto& count = counts_[k];
        count = 0;
        auto& list = updates_[k];
        for (const Index i : plan_[k]) {
            if (lanes_[k]->visit(i, weights(k), &list[count])) ++count;
        }
    }

    // Adds the other lanes' changes to this lane's weights. The gain that a lane computed assumes its own weights; lane
    // 0 corrects it by the rise of the conjugate from the weights that the change is added to.
    void follow_others(int k) {
        double gain = 0;
        const DualWeights own = weights(k);
        const Lane& mine = *lanes_[k];
        for (int other = 0; other < n_lanes_; ++other) {
            for (const Update& update : updates(other)) {
                gain += update.gain;
                if (other == k) continue;
                const Added met = mine.follow(update, 1.0, own);
                const double half = 0.5 * update.omega / options_.l2;
                gain -= update.omega * (met.dot - update.added.dot);
                gain -= update.omega * half * (met.norm2 - update.added.norm2);  // this term is 0 without l1
            }
        }
        if (k == 0) round_gain_ = gain;
    }

    void settle() {
        worse_ = round_gain_ < 0.0;
        if (worse_) {
            ++taken_back_;
            round_gain_ = 0;
            for (const Update& update : updates(0)) round_gain_ += update.gain;
        }
        gain_ += round_gain_;
        ++rounds_;
        const bool too_often = rounds_ >= kFewRounds && kOften * taken_back_ > rounds_;
        last_ = too_often || begin_ >= len(order_.size());
    }

    void take_back(int k) {
        Lane& mine = *lanes_[k];
        for (int other = 1; other < n_lanes_; ++other) {
            for (const Update& update : updates(other)) mine.follow(update, -1.0, weights(k));
        }
        const auto own = updates(k);
        for (std::size_t j = own.size(); k > 0 && j-- > 0;) mine.undo(own[j]);
    }

    std::span<const Index> order_;
    const EgBatches& batches_;
    Interrupt& interrupt_;
    EgOptions options_;
    int n_lanes_;
    Index round_;
    std::barrier<EndOfPhase> sync_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::vector<std::vector<double>> copies_;
    std::vector<std::vector<double>> planes_;  // u (the plane) of each copy of the weights, with l1
    std::vector<std::vector<Update>> updates_;
    std::vector<Index> counts_;
    std::vector<std::vector<Index>> plan_;
    std::unordered_map<Index, int> owner_;
    std::mutex mutex_;
    std::exception_ptr error_;
    bool failed_ = false;  // whether error_ was set at the end of the last phase
    Index begin_ = 0;      // position in order_ of the first visit not yet planned
    Index rounds_ = 0;
    Index taken_back_ = 0;
    bool worse_ = false;  // whether the round lowered the dual
    bool last_ = false;   // whether the round is the last one
    double round_gain_ = 0;
    double gain_ = 0;
};

// Chooses the number of lanes and of examples per lane and round. A round costs a few microseconds of waiting and
// repeating the other lanes' updates; a pass costs threads and copies of the weights. So several lanes pay only above
// some work, counted in slots of about 30 ns. On text chunking long rounds and many lanes took more passes (conflicts).
void choose_lanes(const EgBatches& batches, Index visits, EgOptions& options) {
    constexpr int kMostLanes = 8;
    constexpr Index kTogether = 16;              // examples of a round, of all lanes together
    constexpr double kRoundSlots = 1 << 11;      // least work of a lane in a round
    constexpr double kPassSlots = 1 << 19;       // least work of a pass: shorter passes were slower by up to a half
    constexpr double kSlotsPerWeight = 1.0 / 4;  // least slots of a pass per weight, for the copies of the weights
    options.n_jobs = batches.jobs(options.n_jobs);
    // Without explicit weights a lane would spend as long on the others' changes as on its own.
    if (!batches.features().explicit_weights()) options.n_jobs = 1;
    if (options.round_size <= 0 && options.n_jobs > 1) {
        options.n_jobs = std::min(options.n_jobs, kMostLanes);
        options.round_size = kTogether / options.n_jobs;
        const double slots = static_cast<double>(batches.total_slots()) / static_cast<double>(batches.num_examples());
        const double pass = slots * static_cast<double>(visits);
        const bool worth = slots * static_cast<double>(options.round_size) >= kRoundSlots && pass >= kPassSlots &&
                           pass >= kSlotsPerWeight * static_cast<double>(batches.features().num_weights());
        if (!worth) options.n_jobs = 1;
    }
    if (visits <= 4 * options.n_jobs * options.round_size) options.n_jobs = 1;
}

}  // namespace

EgReport eg_epoch(std::span<const EgState> states, std::span<const Index> order, const EgOptions& options,
                  Interrupt& interrupt) {
    const EgBatches batches(states);
    EgOptions settled = options;
    choose_lanes(batches, len(order.size()), settled);
    if (settled.n_jobs > 1) return Rounds(batches, order, settled, interrupt).run();
    Lane lane(batches, settled, interrupt);
    const DualWeights weights{settled.l1, settled.l2, batches.weights(), batches.plane()};
    for (const Index example : order) lane.visit(example, weights, nullptr);
    return lane.report;
}

}  // namespace partwise
