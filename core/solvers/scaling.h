// Iterative scaling and coordinate descent, one weight at a time, for structures whose labellings are single slots.
//
//   L(w) = l2/2 |w|^2 + sum_x omega_x tau log T_w(x) - sum_t w_t e_t,   e_t = sum_x omega_x f_t(x, gold of x)
//   S_w(x, y) = exp((sum_t w_t f_t(x, y) + kappa c(x, y)) / tau),   T_w(x) = sum_y S_w(x, y),   P_w = S_w / T_w
//
// (Huang et al. 2010, whose equations are cited here; they have tau = 1, kappa = 0 and omega_x = ~P(x).) Every method
// minimises a function A_t with A_t(0) = 0 that is an upper bound of the change of L when w_t moves by z:
//
//   L(w + z e_t) - L(w) <= A_t(z) = l2 (w_t z + z^2/2) - z e_t + tau B_t(z / tau)                      (6), (11)
//
//   GIS     B(s) = E (exp(s F) - 1) / F,  F = f# = max_{x,y} sum_t f_t(x, y)                            Table 1
//   SCGIS   the same with F = f#_t = max_{x,y} f_t(x, y)
//   IIS     B(s) = sum_{x,y} omega P f_t (exp(s f#(x,y)) - 1) / f#(x,y),  f#(x,y) = sum_t f_t(x, y)
//   CD      B(s) = sum_x omega log(1 + sum_y P (exp(s f_t) - 1)): no bound but the change itself
//   bound   B(s) = M log(1 + (exp(s f#_t) - 1) E / (f#_t M)),  M = sum of omega over the column         (39)
//
// with E = sum_{x,y} omega P f_t. The bounds of GIS and IIS hold for changes of all weights at once (9), so they allow
// the parallel update (Algorithm 2); the others need the sequential update (Algorithm 1). All but CD need f >= 0.
#pragma once

#include "solvers/objective.h"
#include "solvers/scaling_kernels.h"
#include "solvers/visit_plan.h"

namespace partwise {

// The methods in the table above.
enum class Bound { kGis, kIis, kScgis, kCd, kLog };

// The bounds of A that CD's line search tries before A itself: none; (38) with (39), as in step 2' of section 3.2.1; or
// first a bound from the third derivative (scaling_functions.h) and then those.
enum class SearchBound { kNone, kPaper, kThirdOrder };

// Facts about the data that the methods need besides the cells; one value per weight, 0 for padding.
struct ScalingConstants {
    std::vector<double> empirical;  // e_t
    std::vector<double> mass;       // M of (40)
    std::vector<Index> columns;     // the weight of each column
    std::vector<Index> labels;      // slots that are a labelling of some example
    Index n_cells = 0;
};

// sum_x omega_x min_y f_t(x, y), and the same with max: e_t lies between the two. Without a penalty, a feature whose
// e_t equals one of them has its best weight at infinity.
struct Extremes {
    std::vector<double> lowest;
    std::vector<double> highest;
};

struct ScalingOptions {
    double l2 = 0;
    Bound bound = Bound::kCd;
    bool parallel = false;  // Algorithm 2, with the function of IIS (GIS has gis_update for it)
    SearchBound search_bound = SearchBound::kThirdOrder;
    double beta = 0.5;         // CD: the factor on a refused step
    double gamma = 0.001;      // CD: the required share of the linear decrease
    double newton_tol = 1e-5;  // one-variable problems are solved to |A'| <= this
    Index max_newton = 1;      // CD: Newton steps on a weight per visit; other methods: on A
    int n_jobs = 1;
};

// The arrays that a pass updates; empirical and mass of ScalingConstants; f#, the `F` of GIS.
struct ScalingState {
    const Objective& objective;
    double* weights;
    double* potentials;  // see Cells
    double* inverse;
    const double* empirical;
    const double* mass;
    double largest_sum;
};

struct ScalingReport {
    Index updates = 0;   // number of changes of weights
    Index cells = 0;     // cells read for moments and line searches
    Index searches = 0;  // number of line searches that had to evaluate (17)
    Index capped = 0;    // number of steps that were cut short because of their exponent
    double gain = 0;     // a lower bound of the decrease of L
};

// Throws InputError unless the map has column access and every labelling is one slot.
const ColumnAccess& scaling_columns(const Objective& objective);

// Computes S and T at these weights, with S scaled to sum to 1 over the labels of each example.
void scaling_refresh(const Objective& objective, const double* weights, double* potentials, double* inverse, int n_jobs,
                     Interrupt& interrupt);

ScalingConstants scaling_constants(const Objective& objective, Interrupt& interrupt);

// f#(x, y) = sum_t f_t(x, y) of all cells, in the order of `Cells`.
std::vector<double> scaling_cell_sums(const Objective& objective, int n_jobs, Interrupt& interrupt);

Extremes scaling_extremes(const Objective& objective, Interrupt& interrupt);
// f# = max_{x,y} f#(x, y)
double scaling_largest_sum(const Objective& objective, Interrupt& interrupt);

// Whether every gold labelling of positive weight is more probable than all others.
bool scaling_separates(const Objective& objective, const double* weights, int n_jobs, Interrupt& interrupt);

// A_t(z) of column k (see the table above).
double scaling_function(const ScalingState& state, Index k, double z, const ScalingOptions& options,
                        Interrupt& interrupt);

// One pass over the columns in `order`.
ScalingReport scaling_epoch(const ScalingState& state, std::span<const Index> order, const ScalingOptions& options,
                            Interrupt& interrupt);

// Visits columns by `plan` in rounds, until as many cells have been read as all columns together have.
ScalingReport scaling_rounds(const ScalingState& state, VisitPlan& plan, const ScalingOptions& options,
                             Interrupt& interrupt);

// The parallel update of GIS (Huang et al. 2010, Algorithm 2) in two parts: the expectations of all features, a sum
// over examples that can be split into batches; and the steps of all weights, which need no examples.

// E_t = sum_x omega_x E[f_t] under P_w(.|x) for all weights, computed by examples: S is not stored (section 4.2).
std::vector<double> scaling_expectations(const Objective& objective, const double* weights, int n_jobs,
                                         Interrupt& interrupt);

// The inputs of the steps: e_t and E_t of all weights, f# and tau.
struct GisSums {
    const double* empirical;
    const double* expectations;
    double largest_sum;
    double temperature;
};

// Adds to each of the weights in `order` the minimiser of its A_t. The report counts no cells. The steps of kGisRun
// weights are computed together, until all of them are accurate enough.
constexpr Index kGisRun = 256;
ScalingReport gis_update(double* weights, std::span<const Index> order, const GisSums& sums,
                         const ScalingOptions& options, Interrupt& interrupt);

}  // namespace partwise
