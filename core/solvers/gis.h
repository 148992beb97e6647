// The parallel update of GIS (Huang et al. 2010, Algorithm 2) in two parts: the expectations of all features, a sum
// over examples that may be taken batch by batch, and from it the steps of all weights, for which no example is needed.
#pragma once

#include <span>
#include <vector>

#include "solvers/scaling.h"

namespace partwise {

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

// Adds to each of the weights of these numbers the minimiser of its A_t (scaling.h). The report counts no cells. The
// weights of a run of kGisRun are solved for together, until all of them are as accurate as is asked for.
constexpr Index kGisRun = 256;
ScalingReport gis_update(double* weights, std::span<const Index> order, const GisSums& sums,
                         const ScalingOptions& options, Interrupt& interrupt);

}  // namespace partwise
