// One pass of online exponentiated gradient (Collins et al. 2008, Figures 2 and 3) over Gibbs dual points.
//
// For the visited example, with theta = A_i w and slot scores s of its distribution p ~ exp(<count, s>):
//   s' = (1 - eta tau) s + eta (theta + kappa c),   d = mu(s) - mu(s'),   w' = w + omega / l2 A'd
//   D(old) - D(new) = omega [tau (H(s) - H(s')) + <theta + kappa c, d> + omega / (2 l2) |A'd|^2]
// With an elastic net w' = soft(u + omega A'd, l1) / l2 on the rows of A'd, and q of `ShrunkWeights` for |A'd|^2.
// Adaptive: eta_i is halved until that change is not positive, and grown a little afterwards (Collins et al. 2008,
// section 7), up to max_step (1 / tau: more would turn the old scores' sign).
//
// With several lanes (n_jobs > 1, if there is enough work) the algorithm differs, and no paper describes it. The order
// is cut into rounds of round_size examples per lane. In a round a lane works with the weights of the round's beginning
// plus its own changes; the changes of the other lanes are added at the round's end. Steps are thus judged with weights
// that are up to a round old. A round that lowered the dual as a whole is undone, except for lane 0's part. If more
// than a quarter of the rounds are undone, lane 0 visits the rest of the order alone. The dual never falls, as with one
// lane, but after the same number of visits it is usually lower.
#pragma once

#include <optional>

#include "solvers/objective.h"

namespace partwise {

struct EgOptions {
    double l2 = 0;
    bool adaptive = true;
    double growth = 1.05;
    double max_step = kInfinity;
    int n_jobs = 1;        // the most lanes
    Index round_size = 0;  // examples per lane and round; 0: choose this and the number of lanes by the work
    double l1 = 0;
    std::optional<double> temperature = {};  // tau of the dual that is maximised; the loss's tau if unset
};

struct EgReport {
    Index visits = 0;    // trial steps
    Index rejected = 0;  // number of trial steps that were halved
    double dual_gain = 0;
    int lanes = 1;
    Index rounds = 0;      // number of rounds of several lanes
    Index taken_back = 0;  // number of rounds that lowered the dual and were undone
};

// What a pass updates in place on one batch. scores and marginals: the slots of all examples concatenated; entropies
// and step_sizes: a value per example. All batches of a pass share the weights and the plane.
struct EgState {
    const Objective& objective;
    double* weights;
    double* scores;
    double* marginals;
    double* entropies;
    double* step_sizes;
    double* plane;  // u, with l1 > 0 only
};

// Examples are numbered through all batches (at least one), so `order` can mix the batches: visits are then the same as
// with all examples in one batch. Visiting batch after batch would take more passes, because the weights at the end of
// a pass would fit the last batch best.
EgReport eg_epoch(std::span<const EgState> states, std::span<const Index> order, const EgOptions& options,
                  Interrupt& interrupt);

// Batch exponentiated gradient: all examples take a step at once. Returns the new dual point's plane (u, b), and two
// terms of the distance between its distributions p and the old ones q:
//   value   sum_i omega_i log Z_i of p
//   extra   sum_i omega_i (H(p_i) + <mu_i, scores of q_i>): sum_i omega_i KL(p_i
// q_i) = log Z of q - extra

// Makes a step of size `step` for every example, from slot scores `scores`, with weights w:
//   moved_i = (1 - step tau) scores_i + step (A_i w + kappa c_i)
// moved may be the array `scores`; `extra` then uses the scores `moved`.
Plane eg_batch_step(const Objective& objective, const double* weights, double step, const double* scores, double* moved,
                    int n_jobs, Interrupt& interrupt);

// The dual point with slot scores A_i z + cost_scale c_i, which are not stored. `extra` assumes that the old point has
// z = 0 and `old_cost_scale`; if its z is not 0, the caller adds <z, sum_i omega_i A_i'mu_i>.
Plane eg_primal_point(const Objective& objective, const double* z, double cost_scale, double old_cost_scale, int n_jobs,
                      Interrupt& interrupt);

// sum_i omega_i A_i'g_i, the features of the gold labellings.
std::vector<double> gold_features(const Objective& objective, int n_jobs, Interrupt& interrupt);

}  // namespace partwise
