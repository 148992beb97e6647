// One pass of online exponentiated gradient (Collins et al. 2008, Figures 2 and 3) over Gibbs dual points.
//
// For the visited example, with theta = A_i w and slot scores s of its distribution p ~ exp(<count, s>):
//   s' = (1 - eta tau) s + eta (theta + kappa c),   d = mu(s) - mu(s'),   w' = w + omega / l2 A'd
//   D(old) - D(new) = omega [tau (H(s) - H(s')) + <theta + kappa c, d> + omega / (2 l2) |A'd|^2]
// With an elastic net w' = soft(u + omega A'd, l1) / l2 on the rows of A'd, and q of `ShrunkWeights` for |A'd|^2.
// Adaptive: eta_i is halved until that change is not positive, and grown a little afterwards (Collins et al. 2008,
// section 7), up to max_step (1 / tau: more would turn the old scores' sign).
//
// With several lanes (n_jobs > 1, where it is worth it) this is another algorithm, which the papers do not have. The
// order is cut into rounds of round_size examples per lane. In a round a lane's weights are those of the round's
// beginning and its own changes: those of the other lanes are added when all are done. So steps are judged with weights
// that are up to a round old, and a round that made the dual worse as a whole is undone, except for lane 0's part. If
// that happens to more than a quarter of the rounds, lane 0 visits the rest of the order alone. The dual never falls,
// as on one lane, but after as many visits it is usually lower.
#pragma once

#include <optional>

#include "solvers/objective.h"

namespace partwise {

struct EgOptions {
    double l2 = 0;
    bool adaptive = true;
    double growth = 1.05;
    double max_step = kInfinity;
    int n_jobs = 1;        // lanes, at most
    Index round_size = 0;  // examples a lane visits between exchanges; 0: this and the lanes are chosen by the work
    double l1 = 0;
    std::optional<double> temperature = {};  // tau of the dual that is climbed; without one the loss's own
};

struct EgReport {
    Index visits = 0;    // trial steps
    Index rejected = 0;  // of them, those that were halved
    double dual_gain = 0;
    int lanes = 1;
    Index rounds = 0;      // of several lanes
    Index taken_back = 0;  // of them, those that made the dual worse
};

// What a pass updates in place on one batch. scores and marginals: slots end to end; entropies and step_sizes: a value
// per example. All batches of a pass have the same weights and plane.
struct EgState {
    const Objective& objective;
    double* weights;
    double* scores;
    double* marginals;
    double* entropies;
    double* step_sizes;
    double* plane;  // u, with l1 > 0 only
};

// Examples are numbered through all batches (at least one), so that `order` may go to and fro between them: visits are
// those of one batch with all examples. Batch after batch would take more passes: the weights at the end of a pass would
// be those of the last batch above all.
EgReport eg_epoch(std::span<const EgState> states, std::span<const Index> order, const EgOptions& options,
                  Interrupt& interrupt);

// Batch exponentiated gradient: all examples take a step at once, and the dual point after it comes as (u, b), with what
// tells how far the step went from the distributions q to p:
//   value   sum_i omega_i log Z_i of p
//   extra   sum_i omega_i (H(p_i) + <mu_i, scores of q_i>), so that sum_i omega_i KL(p_i || q_i) = log Z of q - extra

// A step of size `step` for every example, from slot scores `scores` with weights w:
//   moved_i = (1 - step tau) scores_i + step (A_i w + kappa c_i)
// moved may be scores itself; `extra` is then that of `moved`.
Plane eg_batch_step(const Objective& objective, const double* weights, double step, const double* scores, double* moved,
                    int n_jobs, Interrupt& interrupt);

// The point with slot scores A_i z + cost_scale c_i, which are never stored. `extra` is for a point before with
// z = 0 and `old_cost_scale`; for another z there, <z, sum_i omega_i A_i'mu_i> is to be added.
Plane eg_primal_point(const Objective& objective, const double* z, double cost_scale, double old_cost_scale, int n_jobs,
                      Interrupt& interrupt);

// sum_i omega_i A_i'g_i
std::vector<double> gold_features(const Objective& objective, int n_jobs, Interrupt& interrupt);

}  // namespace partwise
