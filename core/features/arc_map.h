// Arc-factored features: slot (m - 1)(n + 1) + h of a sentence of n words is the arc from head h to modifier m.
//
// A sentence's features are looked up once and kept as a Block while the memory limit allows; the blocks of the other
// sentences are recomputed whenever they are needed. A block numbers the sentence's distinct features: each weight is
// read once, even if many arcs have its feature, and A'd has one entry per feature.
#pragma once

#include "features/arc_index.h"
#include "features/arc_keys.h"
#include "features/feature_map.h"
#include "support/scratch_pool.h"

namespace partwise {

class ArcMap final : public FeatureMap {
   public:
    // memory_limit: bytes for blocks; 0: keep no blocks.
    ArcMap(std::vector<ArcTemplate> templates, std::shared_ptr<const ArcTokens> tokens,
           std::shared_ptr<const ArcIndex> index, double memory_limit, int n_jobs, Interrupt& interrupt);
    ~ArcMap() override;

    Index num_examples() const override { return tokens_->num_sentences(); }
    Index num_weights() const override { return index_->num_weights(); }
    Index num_slots(Index i) const override { return tokens_->length(i) * (tokens_->length(i) + 1); }
    void scores(Index i, const double* w, double* out) const override;
    Added add_transpose(Index i, const double* slots, double scale, double* w) const override;
    Added add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const override;
    void append_projection(Index i, const double* slots, Index first, SparseVector& out) const override;
    void slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const override;
    double transpose_norm2(Index i, const double* slots) const override;
    double psi2_bound(Index i) const override;
    double reach(Index i) const override;
    Index row_length() const override;

    Index num_cached() const { return num_cached_; }
    double cached_bytes() const { return cached_bytes_; }
    // The mean number of features per arc that have a weight.
    double features_per_arc() const;

   private:
    struct Block;
    struct Scratch;
    Index most_features(Index n) const;
    void look_up(Index i, Scratch& s) const;
    void make_block(Index i, Scratch& s, Block& block) const;
    // The kept block of sentence i, or a block made in the scratch memory.
    const Block& block(Index i, Scratch& s) const;
    // Calls sink(ids of the distinct features, their values in A_i' slots).
    template <class Sink>
    void visit(Index i, const double* slots, Sink&& sink) const;
    // Calls f(weight, value) for the nonzero entries of A_i' slots, and prefetch(weight) some entries earlier.
    template <class Prefetch, class F>
    void for_each_weight(Index i, const double* slots, Prefetch&& prefetch, F&& f) const;

    std::vector<ArcTemplate> templates_;
    std::shared_ptr<const ArcTokens> tokens_;
    std::shared_ptr<const ArcIndex> index_;
    mutable ScratchPool<Scratch> scratch_;
    std::vector<std::unique_ptr<const Block>> blocks_;
    Index num_cached_ = 0;
    double cached_bytes_ = 0;
};

}  // namespace partwise
