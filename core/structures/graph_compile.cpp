// Prepares graphs for inference: numbers slots, removes labels that masks forbid, makes junction trees.
#include <cstdio>

#include "structures/graph.h"
#include "structures/numbers.h"
#include "support/parallel.h"
#include "support/sizes.h"

namespace partwise {

namespace {

// An example beyond the memory limit.
struct TooWideError : InputError {
    using InputError::InputError;
};

// Calls f(positions) for all combinations of one position in each of these ranges; the last position changes fastest.
template <class F>
void for_each_combination(const std::vector<Index>& sizes, F&& f) {
    std::vector<Index> at(sizes.size(), 0);
    while (true) {
        f(at);
        std::size_t axis = at.size();
        while (axis > 0 && ++at[axis - 1] == sizes[axis - 1]) at[--axis] = 0;
        if (axis == 0) return;
    }
}

}  // namespace

Graph::Graph(GraphLayout layout, double memory_limit)
    : Structure(len(layout.vertex_ptr.size()) - 1), layout_(std::move(layout)), memory_limit_(memory_limit) {
    const GraphLayout& g = layout_;
    if (!(memory_limit > 0.0)) throw InputError("memory_limit must be above 0");
    check_pointers(g.vertex_ptr, len(g.n_labels.size()), "vertex_ptr");
    check_pointers(g.member_ptr, len(g.members.size()), "member_ptr");
    check_pointers(g.clique_ptr, len(g.member_ptr.size()) - 1, "clique_ptr");
    if (g.clique_ptr.size() != g.vertex_ptr.size()) throw InputError("clique_ptr and vertex_ptr differ in length");
    if (g.tables.size() + 1 != g.member_ptr.size()) throw InputError("tables must have one entry per clique");
    if (!g.common_ptr.empty()) check_pointers(g.common_ptr, len(g.common_labels.size()), "common_ptr");
    table_ptr_.push_back(0);
    row_begin_.resize(g.n_labels.size());
    clique_begin_.resize(g.tables.size());
    num_slots_.resize(num_examples());
    compiled_.resize(num_examples());
    for (Index i = 0; i < num_examples(); ++i) {
        const Index first = g.vertex_ptr[i];
        const Index n = num_vertices(i);
        if (n == 0) refuse(i, " has no vertices");
        Index next = 0;
        for (Index v = 0; v < n; ++v) {
            if (g.n_labels[first + v] < 1) refuse(i, ": vertex ", v, " has no labels");
            row_begin_[first + v] = next;
            next = checked_sum(next, padded_width(g.n_labels[first + v]), "the number of slots");
        }
        // Tables in the order of their numbers: the shape of each by the first clique that names it.
        std::map<Index, std::vector<Index>> shapes;
        for (std::size_t t = 0; t + 1 < g.common_ptr.size(); ++t) {
            shapes[len(t)].assign(g.common_labels.begin() + g.common_ptr[t],
                                  g.common_labels.begin() + g.common_ptr[t + 1]);
            if (shapes[len(t)].empty()) throw InputError("common table ", len(t), " has no vertices");
        }
        for (Index c = g.clique_ptr[i]; c < g.clique_ptr[i + 1]; ++c) {
            const std::string name = concat(": clique ", c - g.clique_ptr[i]);
            std::vector<Index> shape;
            std::vector<Index> seen;
            for (Index k = g.member_ptr[c]; k < g.member_ptr[c + 1]; ++k) {
                const Index v = g.members[k];
                if (v < 0 || v >= n) refuse(i, name, " has the vertex ", v, ", which is not in [0, ", n, ")");
                shape.push_back(g.n_labels[first + v]);
                seen.push_back(v);
            }
            if (shape.empty()) refuse(i, name, " has no vertices");
            std::sort(seen.begin(), seen.end());
            if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) refuse(i, name, " names a vertex twice");
            if (g.tables[c] < 0) refuse(i, name, " has a negative number of a table");
            const auto [at, added] = shapes.emplace(g.tables[c], shape);
            if (!added && at->second != shape) {
                refuse(i, name, " has the table ", g.tables[c], ", which is for other numbers of labels");
            }
        }
        std::map<Index, Index> begins;
        for (const auto& [table, shape] : shapes) {
            if (table != len(begins.size())) refuse(i, " has no table ", begins.size());
            begins[table] = next;
            table_begin_.push_back(next);
            Index size = padded_width(shape.back());
            for (std::size_t k = 0; k + 1 < shape.size(); ++k) {
                size = checked_product(size, shape[k], "the number of a table's slots");
            }
            next = checked_sum(next, size, "the number of slots");
        }
        for (Index c = g.clique_ptr[i]; c < g.clique_ptr[i + 1]; ++c) clique_begin_[c] = begins[g.tables[c]];
        table_ptr_.push_back(len(table_begin_.size()));
        num_slots_[i] = next;
    }
    slot_offsets();  // throws if the number of all slots does not fit an Index
}

std::vector<Index> Graph::table_offsets(Index i) const {
    std::vector<Index> offsets(table_begin_.begin() + table_ptr_[i], table_begin_.begin() + table_ptr_[i + 1]);
    offsets.push_back(num_slots(i));
    return offsets;
}

std::vector<Graph::Axes> Graph::axes_of(Index i) const {
    const Index first = layout_.vertex_ptr[i];
    std::vector<Axes> all;
    for (Index v = 0; v < num_vertices(i); ++v) all.push_back({row_begin_[first + v], {v}, {1}});
    for (Index c = layout_.clique_ptr[i]; c < layout_.clique_ptr[i + 1]; ++c) {
        Axes& axes = all.emplace_back();
        axes.begin = clique_begin_[c];
        axes.vertices.assign(layout_.members.begin() + layout_.member_ptr[c],
                             layout_.members.begin() + layout_.member_ptr[c + 1]);
        axes.steps.assign(axes.vertices.size(), 1);
        for (std::size_t k = axes.vertices.size() - 1; k > 0; --k) {
            const Index labels = layout_.n_labels[first + axes.vertices[k]];
            const bool last = k + 1 == axes.vertices.size();
            axes.steps[k - 1] = axes.steps[k] * (last ? padded_width(labels) : labels);
        }
    }
    return all;
}

std::vector<Index> Graph::shape_of(Index i) const {
    const GraphLayout& g = layout_;
    std::vector<Index> shape(g.n_labels.begin() + g.vertex_ptr[i], g.n_labels.begin() + g.vertex_ptr[i + 1]);
    for (Index c = g.clique_ptr[i]; c < g.clique_ptr[i + 1]; ++c) {
        shape.push_back(-1 - g.tables[c]);  // no vertex has this number, no number of labels is negative
        shape.insert(shape.end(), g.members.begin() + g.member_ptr[c], g.members.begin() + g.member_ptr[c + 1]);
    }
    return shape;
}

// Keeps a label if each clique of its vertex has an allowed entry with this label and labels kept for the other
// vertices. Repeats until no more labels are dropped.
std::vector<std::vector<Index>> Graph::labels_left(Index i, const std::vector<Axes>& all) const {
    const Index first = layout_.vertex_ptr[i];
    const std::uint8_t* allowed = mask(i);
    std::vector<std::vector<Index>> left(num_vertices(i));
    for (Index v = 0; v < num_vertices(i); ++v) {
        for (Index a = 0; a < layout_.n_labels[first + v]; ++a) left[v].push_back(a);
    }
    bool changed = allowed != nullptr;
    while (changed) {
        changed = false;
        for (const Axes& axes : all) {
            Interrupt::check_current();
            std::vector<Index> sizes;
            std::vector<std::vector<std::uint8_t>> supported;
            for (const Index v : axes.vertices) {
                sizes.push_back(len(left[v].size()));
                supported.emplace_back(left[v].size(), 0);
            }
            for_each_combination(sizes, [&](const std::vector<Index>& at) {
                Index slot = axes.begin;
                for (std::size_t k = 0; k < at.size(); ++k) slot += axes.steps[k] * left[axes.vertices[k]][at[k]];
                if (!allowed[slot]) return;
                for (std::size_t k = 0; k < at.size(); ++k) supported[k][at[k]] = 1;
            });
            for (std::size_t k = 0; k < sizes.size(); ++k) {
                std::vector<Index>& own = left[axes.vertices[k]];
                std::vector<Index> kept;
                for (std::size_t a = 0; a < own.size(); ++a) {
                    if (supported[k][a]) kept.push_back(own[a]);
                }
                if (kept.empty()) {
                    throw InputError("the mask of example ", i, " leaves vertex ", axes.vertices[k], " no label");
                }
                if (kept.size() < own.size()) {
                    own = std::move(kept);
                    changed = true;
                }
            }
        }
    }
    return left;
}

std::shared_ptr<const Graph::Compiled> Graph::compile(Index i) const {
    const std::vector<Axes> all = axes_of(i);
    const std::uint8_t* allowed = mask(i);
    auto out = std::make_shared<Compiled>();
    out->masked = allowed != nullptr;
    out->labels = labels_left(i, all);
    std::vector<Index> variable(num_vertices(i), -1);
    std::vector<Index> sizes;
    std::vector<Index> vertices;
    for (Index v = 0; v < num_vertices(i); ++v) {
        if (out->labels[v].size() < 2) continue;
        variable[v] = len(sizes.size());
        sizes.push_back(len(out->labels[v].size()));
        vertices.push_back(v);
    }
    // Axes with at least one variable, and the slot at which their variables have their first labels.
    std::vector<std::pair<const Axes*, Index>> open;
    std::vector<std::vector<Index>> scopes;
    for (const Axes& axes : all) {
        std::vector<Index> scope;
        Index slot = axes.begin;
        for (std::size_t k = 0; k < axes.vertices.size(); ++k) {
            const Index v = axes.vertices[k];
            if (variable[v] >= 0) {
                scope.push_back(variable[v]);
            } else {
                slot += axes.steps[k] * out->labels[v].front();
            }
        }
        if (scope.empty()) {
            out->always.push_back(slot);
        } else {
            scopes.push_back(std::move(scope));
            open.emplace_back(&axes, slot);
        }
    }
    try {
        out->tree = junction::make_tree(sizes, scopes, memory_limit_);
    } catch (const junction::TooWide& wide) {
        char text[192];
        const char* least = wide.at_least ? "at least " : "";
        std::snprintf(text, sizeof text,
                      ": its junction tree of width %s%lld would take %s%.6g bytes, more than memory_limit = %.6g",
                      least, static_cast<long long>(wide.width), least, wide.bytes, wide.most_bytes);
        throw TooWideError("example ", i, text);
    }

    // The slots of factors' entries, with axes in the order of elimination.
    std::vector<Index> place(sizes.size());
    for (std::size_t p = 0; p < sizes.size(); ++p) {
        place[out->tree.order[p]] = len(p);
        out->vertices.push_back(vertices[out->tree.order[p]]);
    }
    out->slots.reserve(out->tree.factor_size);
    for (const auto& each : open) {
        const Axes* axes = each.first;
        std::vector<std::pair<Index, std::size_t>> order;  // place of a variable, its axis
        for (std::size_t k = 0; k < axes->vertices.size(); ++k) {
            const Index v = axes->vertices[k];
            if (variable[v] >= 0) order.emplace_back(place[variable[v]], k);
        }
        std::sort(order.begin(), order.end());
        std::vector<Index> shape;
        for (const auto& [at, k] : order) shape.push_back(len(out->labels[axes->vertices[k]].size()));
        for_each_combination(shape, [&](const std::vector<Index>& at) {
            Index slot = each.second;
            for (std::size_t j = 0; j < at.size(); ++j) {
                const std::size_t k = order[j].second;
                slot += axes->steps[k] * out->labels[axes->vertices[k]][at[j]];
            }
            out->slots.push_back(allowed && !allowed[slot] ? -1 : slot);
        });
    }
    return out;
}

const Graph::Compiled& Graph::compiled(Index i) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<const Compiled>& own = compiled_[i];
    const bool masked_now = mask(i) != nullptr;
    if (own && own->masked == masked_now) return *own;
    if (masked_now) {
        own = compile(i);
    } else {
        std::shared_ptr<const Compiled>& shared = shapes_[shape_of(i)];
        if (!shared) shared = compile(i);
        own = shared;
    }
    return *own;
}

void Graph::check_mask(Index i) const {
    compiled_[i].reset();
    try {
        Workspace ws;
        const std::vector<double> zeros(num_slots(i), 0.0);
        SlotCounts best;
        if (find_best(i, zeros.data(), nullptr, best, ws) < kLogsOfZero) nothing_left(i);
    } catch (const TooWideError&) {
        compiled_[i].reset();  // its use is refused later, unless another mask makes the example smaller
    } catch (...) {
        compiled_[i].reset();
        throw;
    }
}

}  // namespace partwise
