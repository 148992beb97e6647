// Iterative scaling and coordinate descent on one weight at a time, for structures whose labellings are single slots.
//
//   L(w) = l2/2 |w|^2 + sum_x omega_x tau log T_w(x) - sum_t w_t e_t,   e_t = sum_x omega_x f_t(x, gold of x)
//   S_w(x, y) = exp((sum_t w_t f_t(x, y) + kappa c(x, y)) / tau),   T_w(x) = sum_y S_w(x, y),   P_w = S_w / T_w
//
// (Huang et al. 2010: tau = 1, kappa = 0 and omega_x = ~P(x).) Every method minimises a function A_t with A_t(0) = 0
// that lies above the change of L when w_t moves by z:
//
//   L(w + z e_t) - L(w) <= A_t(z) = l2 (w_t z + z^2/2) - z e_t + tau B_t(z / tau)                      (6), (11)
//
//   GIS     B(s) = E (exp(s F) - 1) / F,  F = f# = max_{x,y} sum_t f_t(x, y)                            Table 1
//   SCGIS   the same with F = f#_t = max_{x,y} f_t(x, y)
//   IIS     B(s) = sum_{x,y} omega P f_t (exp(s f#(x,y)) - 1) / f#(x,y),  f#(x,y) = sum_t f_t(x, y)
//   CD      B(s) = sum_x omega log(1 + sum_y P (exp(s f_t) - 1)): no bound but the change itself
//   bound   B(s) = M log(1 + (exp(s f#_t) - 1) E / (f#_t M)),  M = sum of omega over the column         (39)
//
// with E = sum_{x,y} omega P f_t. The bounds of GIS and IIS hold for all weights at once (9), so that they allow the
// parallel update (Algorithm 2); the others are for the sequential one (Algorithm 1). All but CD need f >= 0.
#pragma once

#include <span>

#include "solvers/objective.h"
#include "solvers/scaling_kernels.h"
#include "solvers/visit_plan.h"

namespace partwise {

// A row of the table above.
enum class Bound { kGis, kIis, kScgis, kCd, kLog };

// What CD's line search tries before A itself: (38) with (39), as in step 2' of section 3.2.1; or before that a bound
// from the third derivative (scaling_functions.h).
enum class SearchBound { kNone, kPaper, kThirdOrder };

// What the methods need of the data in addition to the cells; one value per weight, 0 for padding.
struct ScalingConstants {
    std::vector<double> empirical;  // e_t
    std::vector<double> mass;       // M of (40)
    std::vector<Index> columns;     // the weight of each column
    std::vector<Index> labels;      // slots that are labellings of some example
    Index n_cells = 0;
};

// sum_x omega_x min_y f_t(x, y) and the same with max: e_t lies between them. Without a penalty, a feature with e_t at
// one end has its best weight at infinity.
struct Extremes {
    std::vector<double> lowest;
    std::vector<double> highest;
};

struct ScalingOptions {
    double l2 = 0;
    Bound bound = Bound::kCd;
    bool parallel = false;  // Algorithm 2, with IIS's function (that of GIS: gis_update)
    SearchBound search_bound = SearchBound::kThirdOrder;
    double beta = 0.5;         // CD: factor on a step that is refused
    double gamma = 0.001;      // CD: share of the linear decrease that is asked for
    double newton_tol = 1e-5;  // one-variable problems are solved to |A'| <= this
    Index max_newton = 1;      // CD: Newton steps on one weight before the next one's turn; others: on A
    int n_jobs = 1;
};

// What a pass updates in place, and what it knows of the data: empirical and mass of ScalingConstants, f# for GIS.
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
    Index updates = 0;   // weights that moved
    Index cells = 0;     // cells read for moments and line searches
    Index searches = 0;  // line searches that had to evaluate (17)
    Index capped = 0;    // steps that were cut short for their exponent
    double gain = 0;     // by how much L fell at least
};

// Throws InputError unless the map has column access and every labelling is one slot.
const ColumnAccess& scaling_columns(const Objective& objective);

// S and T at these weights, S scaled to sum to 1 for each context.
void scaling_refresh(const Objective& objective, const double* weights, double* potentials, double* inverse, int n_jobs,
                     Interrupt& interrupt);

ScalingConstants scaling_constants(const Objective& objective, Interrupt& interrupt);

// f#(x, y) = sum_t f_t(x, y), slot by slot as `Cells` are.
std::vector<double> scaling_cell_sums(const Objective& objective, int n_jobs, Interrupt& interrupt);

Extremes scaling_extremes(const Objective& objective, Interrupt& interrupt);
// f#
double scaling_largest_sum(const Objective& objective, Interrupt& interrupt);

// Whether every gold labelling (of positive weight) is likelier than all others.
bool scaling_separates(const Objective& objective, const double* weights, int n_jobs, Interrupt& interrupt);

// A_t(z) of column k.
double scaling_function(const ScalingState& state, Index k, double z, const ScalingOptions& options,
                        Interrupt& interrupt);

// One pass over the columns in `order`.
ScalingReport scaling_epoch(const ScalingState& state, std::span<const Index> order, const ScalingOptions& options,
                            Interrupt& interrupt);

// Rounds over the columns that are due by `plan`, until as many cells were read as all columns have.
ScalingReport scaling_rounds(const ScalingState& state, VisitPlan& plan, const ScalingOptions& options,
                             Interrupt& interrupt);

// The parallel update of GIS (Huang et al. 2010, Algorithm 2) in two parts: the expectations of all features, a sum over
// examples that may be taken batch by batch, and from it the steps of all weights, for which no example is needed.

// E_t = sum_x omega_x E[f_t] under P_w(.|x) of all weights, row by row: there is no table of S (section 4.2).
std::vector<double> scaling_expectations(const Objective& objective, const double* weights, int n_jobs,
                                         Interrupt& interrupt);

// What the steps take: e_t and E_t of all weights, f# and tau.
struct GisSums {
    const double* empirical;
    const double* expectations;
    double largest_sum;
    double temperature;
};

// Adds to each of the weights of these numbers the minimiser of its A_t. The report counts no cells. The
// weights of a run of kGisRun are solved for together, until all of them are as accurate as is asked for.
constexpr Index kGisRun = 256;
ScalingReport gis_update(double* weights, std::span<const Index> order, const GisSums& sums,
                         const ScalingOptions& options, Interrupt& interrupt);

}  // namespace partwise
