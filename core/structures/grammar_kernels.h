// Sums and maxima over the derivations of a sentence, by hand; grammar_program.h is their oracle.
#pragma once

#include <vector>

#include "structures/grammar_rules.h"
#include "support/workspace.h"

namespace partwise::grammar {

// log Z of scores (-infinity where masked), expected counts of slots and entropy (either may be null), in doubles. False
// where their range does not suffice, or there is no derivation.
bool plain_sums(const Sentence& sentence, const double* scores, double* marginals, double* entropy, double& log_z,
                Workspace& ws);

// The slots of the best derivation, each named as often as it is used; false if there is none. Ties go to the first
// symbol of whole sentences, then in each span to the first rule, then to the first split.
bool best_derivation(const Sentence& sentence, const double* scores, std::vector<Index>& slots, Workspace& ws);

}  // namespace partwise::grammar
