#include "features/kernel.h"

#include <numeric>

#include "support/multiply.h"
#include "support/sizes.h"
#include "support/vector_math.h"

namespace partwise {

namespace {

double power(double base, int exponent) {
    double product = 1.0;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) product *= base;
        base *= base;
    }
    return product;
}

}  // namespace

void KernelFunction::check() const {
    if (!(gamma > 0.0) || !std::isfinite(gamma)) throw InputError("gamma must be above 0 and finite");
    if (!(coef0 >= 0.0) || !std::isfinite(coef0))
        throw InputError("coef0 must be 0 or more and finite: with a negative one it is not a kernel");
    if (degree < 1) throw InputError("degree must be at least 1");
    if (!(bias >= 0.0) || !std::isfinite(bias)) throw InputError("bias must be 0 or more and finite");
}

void KernelFunction::apply(double* values, Index n) const {
    switch (kind) {
        case Kind::kLinear:
            if (bias != 0.0) {
                for (Index p = 0; p < n; ++p) values[p] += bias;
            }
            break;
        case Kind::kPolynomial:
            for (Index p = 0; p < n; ++p) values[p] = power(gamma * values[p] + coef0, degree) + bias;
            break;
        case Kind::kRbf:
            for (Index p = 0; p < n; ++p) values[p] = fast_exp(-gamma * (values[p] > 0.0 ? values[p] : 0.0)) + bias;
            break;
    }
}

bool KernelFunction::distances(double* __restrict values, Index n, double norm2,
                               const double* __restrict norms2) const {
    int found = 0;
    for (Index p = 0; p < n; ++p) {
        const double sum = norm2 + norms2[p];
        values[p] = sum - 2.0 * values[p];
        found |= cancels(values[p], sum);
    }
    return found != 0;
}

// d_t = e_y - e_z for labels y and z of row t, and <d_t, d_s> lies between -2 and 2.
double Kernel::psi2_bound(Index first, Index last, const double* gram) const {
    double sum = 0;
    for (Index k = 0; k < (last - first) * (last - first); ++k) sum += std::abs(gram[k]);
    return 2.0 * sum;
}

DenseKernel::DenseKernel(KernelFunction function, DenseRows queries, DenseRows support)
    : Kernel(queries.n_rows, support.data ? support.n_rows : queries.n_rows,
             !support.data || (support.data == queries.data && support.n_rows == queries.n_rows)),
      function_(function),
      queries_(std::move(queries)),
      support_(support.data ? std::move(support) : queries_) {
    function_.check();
    if (queries_.n_inputs < 1) throw InputError("dense rows need at least one input");
    if (support_.n_inputs != queries_.n_inputs) {
        throw InputError("queries have ", queries_.n_inputs, " inputs, the support has ", support_.n_inputs);
    }
    for (const DenseRows* rows : {&queries_, &support_}) {
        if (!all_finite(rows->data, rows->n_rows * rows->n_inputs))
            throw InputError("a feature value is NaN or infinite");
        auto& norms2 = rows == &queries_ ? query_norms2_ : support_norms2_;
        for (Index p = 0; p < rows->n_rows; ++p)
            norms2.push_back(norm2(rows->data + p * rows->n_inputs, rows->n_inputs));
    }
    const Index d = support_.n_inputs;
    panels_.assign((support_.n_rows + kPanel - 1) / kPanel * kPanel * d, 0.0);
    for (Index p = 0; p < support_.n_rows; ++p) {
        double* panel = panels_.data() + p / kPanel * kPanel * d + p % kPanel;
        for (Index j = 0; j < d; ++j) panel[j * kPanel] = support_.data[p * d + j];
    }
}

void DenseKernel::values(Index first, Index last, Index begin, Index end, double* out) const {
    const Index d = queries_.n_inputs;
    const Index n = end - begin;
    const Index rows = last - first;
    std::vector<double> block(rows * kPanel);
    for (Index p = begin / kPanel * kPanel; p < end; p += kPanel) {
        multiply({queries_.data + first * d, d}, {panels_.data() + p * d, kPanel}, rows, d, kPanel, block.data(),
                 kPanel);
        const Index from = std::max(p, begin);
        const Index to = std::min(p + kPanel, end);
        for (Index t = 0; t < rows; ++t)
            std::copy(block.data() + t * kPanel + (from - p), block.data() + t * kPanel + (to - p),
                      out + t * n + (from - begin));
    }
    for (Index t = 0; t < rows; ++t, out += n) {
        if (function_.of_distances() &&
            function_.distances(out, n, query_norms2_[first + t], support_norms2_.data() + begin))
            mend_distances(first + t, begin, end, out);
        function_.apply(out, n);
    }
}

void DenseKernel::mend_distances(Index query, Index begin, Index end, double* distances2) const {
    const Index d = queries_.n_inputs;
    const double* x = queries_.data + query * d;
    for (Index p = begin / kPanel * kPanel; p < end; p += kPanel) {
        const Index from = std::max(p, begin);
        const Index to = std::min(p + kPanel, end);
        const auto lost = [&](Index row) {
            return function_.cancels(distances2[row - begin], query_norms2_[query] + support_norms2_[row]);
        };
        bool any = false;
        for (Index row = from; row < to; ++row) any |= lost(row);
        if (!any) continue;
        double sums[kPanel] = {};
        const double* y = panels_.data() + p * d;
        for (Index j = 0; j < d; ++j, y += kPanel) {
#pragma omp simd
            for (Index c = 0; c < kPanel; ++c) sums[c] += (x[j] - y[c]) * (x[j] - y[c]);
        }
        for (Index row = from; row < to; ++row) {
            if (lost(row)) distances2[row - begin] = sums[row - p];
        }
    }
}

// For the linear kernel, return the bound of explicit features: solvers then take the same step sizes with either.
double DenseKernel::psi2_bound(Index first, Index last, const double* gram) const {
    if (function_.kind != KernelFunction::Kind::kLinear) return Kernel::psi2_bound(first, last, gram);
    const Index d = queries_.n_inputs;
    double sum = 0;
    for (Index j = 0; j < d; ++j) {
        double total = 0;
        for (Index t = first; t < last; ++t) total += std::abs(queries_.data[t * d + j]);
        sum += total * total;
    }
    const auto n = static_cast<double>(last - first);
    return 2.0 * (sum + n * n * function_.bias);
}

SparseRows::SparseRows(Index num_attributes, std::span<const Index> row_ptr, std::span<const Index> attributes,
                       std::span<const double> values)
    : num_attributes_(num_attributes) {
    if (num_attributes < 0) throw InputError("the number of attributes is negative");
    check_pointers(row_ptr, len(attributes.size()), "row_ptr");
    if (!all_finite(values.data(), len(values.size()))) throw InputError("a feature value is NaN or infinite");
    ptr_.push_back(0);
    std::vector<std::pair<Index, double>> row;
    for (std::size_t p = 0; p + 1 < row_ptr.size(); ++p) {
        row.clear();
        for (Index e = row_ptr[p]; e < row_ptr[p + 1]; ++e) {
            const Index a = attributes[e];
            if (a < -1 || a >= num_attributes) throw InputError("row ", p, ": attribute ", a, " is out of range");
            if (a >= 0) row.emplace_back(a, values.empty() ? 1.0 : values[e]);
        }
        for_each_merged(row, [&](Index attribute, double value) {
            attributes_.push_back(attribute);
            values_.push_back(value);
        });
        ptr_.push_back(len(attributes_.size()));
    }
}

double SparseRows::norm2(Index row) const {
    const auto v = values(row);
    return partwise::norm2(v.data(), len(v.size()));
}

double SparseRows::dot(Index row, const SparseRows& other, Index other_row) const {
    const auto a = attributes(row);
    const auto b = other.attributes(other_row);
    const auto x = values(row);
    const auto y = other.values(other_row);
    double sum = 0;
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        if (a[i] == b[j]) {
            sum += x[i++] * y[j++];
        } else if (a[i] < b[j]) {
            ++i;
        } else {
            ++j;
        }
    }
    return sum;
}

double SparseRows::distance2(Index row, const SparseRows& other, Index other_row) const {
    const auto a = attributes(row);
    const auto b = other.attributes(other_row);
    const auto x = values(row);
    const auto y = other.values(other_row);
    double sum = 0;
    for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
        const bool mine = j == b.size() || (i < a.size() && a[i] <= b[j]);
        const bool theirs = i == a.size() || (j < b.size() && b[j] <= a[i]);
        const double difference = (mine ? x[i++] : 0.0) - (theirs ? y[j++] : 0.0);
        sum += difference * difference;
    }
    return sum;
}

SparseKernel::SparseKernel(KernelFunction function, std::shared_ptr<const SparseRows> queries,
                           std::shared_ptr<const SparseRows> support)
    : Kernel(queries->num_rows(), support ? support->num_rows() : queries->num_rows(), !support || support == queries),
      function_(function),
      queries_(std::move(queries)),
      support_(support ? std::move(support) : queries_),
      posting_ptr_(queries_->num_attributes() + 1, 0) {
    function_.check();
    if (support_->num_attributes() != queries_->num_attributes()) {
        throw InputError("queries have ", queries_->num_attributes(), " attributes, the support has ",
                         support_->num_attributes());
    }
    for (Index p = 0; p < queries_->num_rows(); ++p) query_norms2_.push_back(queries_->norm2(p));
    for (Index p = 0; p < support_->num_rows(); ++p) {
        support_norms2_.push_back(support_->norm2(p));
        for (const Index a : support_->attributes(p)) ++posting_ptr_[a + 1];
    }
    std::partial_sum(posting_ptr_.begin(), posting_ptr_.end(), posting_ptr_.begin());
    postings_.resize(posting_ptr_.back());
    std::vector<Index> next(posting_ptr_.begin(), posting_ptr_.end() - 1);
    for (Index p = 0; p < support_->num_rows(); ++p) {
        const auto a = support_->attributes(p);
        const auto v = support_->values(p);
        for (std::size_t e = 0; e < a.size(); ++e) postings_[next[a[e]]++] = {p, v[e]};
    }
}

void SparseKernel::values(Index first, Index last, Index begin, Index end, double* out) const {
    const Index n = end - begin;
    // Few support rows are compared with the query one by one; for many, use the lists of rows that share an attribute.
    const bool by_lists = n > 64;
    for (Index t = first; t < last; ++t, out += n) {
        if (by_lists) {
            fill(out, n, 0.0);
            const auto a = queries_->attributes(t);
            const auto x = queries_->values(t);
            for (std::size_t e = 0; e < a.size(); ++e) {
                const Posting* stop = postings_.data() + posting_ptr_[a[e] + 1];
                const Posting* at = postings_.data() + posting_ptr_[a[e]];
                if (begin > 0)
                    at = std::lower_bound(at, stop, begin, [](const Posting& p, Index b) { return p.row < b; });
                for (; at < stop && at->row < end; ++at) out[at->row - begin] += x[e] * at->value;
            }
        } else {
            for (Index p = 0; p < n; ++p) out[p] = queries_->dot(t, *support_, begin + p);
        }
        const double norm2 = query_norms2_[t];
        const double* norms2 = support_norms2_.data() + begin;
        if (function_.of_distances() && function_.distances(out, n, norm2, norms2)) {
            for (Index p = 0; p < n; ++p) {
                if (function_.cancels(out[p], norm2 + norms2[p])) out[p] = queries_->distance2(t, *support_, begin + p);
            }
        }
        function_.apply(out, n);
    }
}

double SparseKernel::psi2_bound(Index first, Index last, const double* gram) const {
    if (function_.kind != KernelFunction::Kind::kLinear) return Kernel::psi2_bound(first, last, gram);
    std::vector<std::pair<Index, double>> all;
    for (Index t = first; t < last; ++t) {
        const auto a = queries_->attributes(t);
        const auto x = queries_->values(t);
        for (std::size_t e = 0; e < a.size(); ++e) all.emplace_back(a[e], std::abs(x[e]));
    }
    std::sort(all.begin(), all.end());
    double sum = 0;
    for_each_merged(all, [&](Index, double total) { sum += total * total; });
    const auto n = static_cast<double>(last - first);
    return 2.0 * (sum + n * n * function_.bias);
}

StoredKernel::StoredKernel(DenseRows matrix, bool square)
    : Kernel(matrix.n_rows, matrix.n_inputs, square), matrix_(std::move(matrix)) {
    if (square && matrix_.n_rows != matrix_.n_inputs) {
        throw InputError("a kernel matrix of training rows must be square, this one has ", matrix_.n_rows, " rows and ",
                         matrix_.n_inputs, " columns");
    }
    if (!all_finite(matrix_.data, matrix_.n_rows * matrix_.n_inputs))
        throw InputError("a kernel value is NaN or infinite");
}

void StoredKernel::values(Index first, Index last, Index begin, Index end, double* out) const {
    const Index n = end - begin;
    for (Index t = first; t < last; ++t, out += n) copy(stored(t) + begin, out, n);
}

PlacedKernel::PlacedKernel(std::shared_ptr<const Kernel> kernel, std::vector<Index> query_places,
                           std::vector<Index> support_places)
    : Kernel(kernel->num_queries(), kernel->num_support(), kernel->square()),
      kernel_(std::move(kernel)),
      query_places_(std::move(query_places)),
      support_places_(std::move(support_places)) {
    if (len(query_places_.size()) != num_queries() || len(support_places_.size()) != num_support())
        throw InputError("places: one per row is needed");
    if (square() && query_places_ != support_places_) throw InputError("places: queries and support are the same rows");
}

void PlacedKernel::values(Index first, Index last, Index begin, Index end, double* out) const {
    kernel_->values(first, last, begin, end, out);
    const Index n = end - begin;
    for (Index t = first; t < last; ++t, out += n) {
        for (Index p = 0; p < n; ++p) {
            if (support_places_[begin + p] != query_places_[t]) out[p] = 0.0;
        }
    }
}

KernelSegment::KernelSegment(std::shared_ptr<const Kernel> kernel, std::vector<Index> example_ptr, Index n_columns,
                             Index width, double memory_limit, bool recompute)
    : kernel_(std::move(kernel)), example_ptr_(std::move(example_ptr)), width_(width), limit_(0) {
    if (n_columns < 1 || width < n_columns || width % 4 != 0)
        throw InputError("the row width does not fit the columns");
    if (!(memory_limit >= 0.0)) throw InputError("memory_limit must be 0 or more");
    check_pointers(example_ptr_, kernel_->num_queries(), "example_ptr");
    checked_product(kernel_->num_support(), width, "the number of weights");
    checked_product(kernel_->num_queries(), width, "the number of slots");
    if (!kernel_->square()) return;
    const double needed = static_cast<double>(kernel_->num_queries()) * static_cast<double>(kernel_->num_support()) *
                          static_cast<double>(sizeof(double));
    if (needed > memory_limit && !recompute) {
        throw InputError("the kernel matrix of ", kernel_->num_queries(), " rows takes ", std::llround(needed / 1e6),
                         " MB, above the memory limit of ", std::llround(memory_limit / 1e6),
                         " MB: raise memory_limit, train on less data, or have what does not fit recomputed in "
                         "every pass (recompute)");
    }
    limit_ = static_cast<Index>(std::min(memory_limit, needed) / static_cast<double>(sizeof(double)));
    cache_ = std::vector<std::atomic<const double*>>(num_examples());
    gram_ptr_.push_back(0);
    for (Index i = 0; i < num_examples(); ++i) gram_ptr_.push_back(gram_ptr_.back() + n_rows(i) * n_rows(i));
    grams_.resize(gram_ptr_.back());
    for (Index i = 0; i < num_examples(); ++i) {
        const Index first = example_ptr_[i];
        const Index last = example_ptr_[i + 1];
        kernel_->values(first, last, first, last, grams_.data() + gram_ptr_[i]);
    }
}

KernelSegment::~KernelSegment() {
    for (auto& entry : cache_) delete[] entry.load();
}

void KernelSegment::need_square() const {
    if (!kernel_->square()) throw InputError("these rows are for prediction: weights are coefficients of other rows");
}

const double* KernelSegment::keep(Index i) const {
    if (const double* found = cache_[i].load(std::memory_order_acquire)) return found;
    const Index n = kernel_->num_support();
    const Index size = n_rows(i) * n;
    if (kept_.fetch_add(size) + size > limit_) {
        kept_.fetch_sub(size);
        return nullptr;
    }
    auto fresh = std::make_unique_for_overwrite<double[]>(size);
    kernel_->values(example_ptr_[i], example_ptr_[i + 1], 0, n, fresh.get());
    const double* none = nullptr;
    if (cache_[i].compare_exchange_strong(none, fresh.get(), std::memory_order_acq_rel)) return fresh.release();
    kept_.fetch_sub(size);  // another thread stored this example first
    return none;
}

const double* KernelSegment::rows(Index i, Index begin, std::vector<double>& scratch, Index& stride) const {
    const Index first = example_ptr_[i];
    const Index n = kernel_->num_support();
    stride = n;
    if (const double* stored = kernel_->stored(first)) return stored + begin;
    if (kernel_->square()) {
        if (const double* kept = keep(i)) return kept + begin;
    }
    stride = n - begin;
    scratch.resize(n_rows(i) * stride);
    kernel_->values(first, first + n_rows(i), begin, n, scratch.data());
    return scratch.data();
}

void KernelSegment::scores(Index i, const double* w, double* out) const {
    if (n_rows(i) == 0) return;
    std::vector<double> scratch;
    Index stride = 0;
    const double* k = rows(i, 0, scratch, stride);
    multiply({k, stride}, {w, width_}, n_rows(i), kernel_->num_support(), width_, out, width_);
}

// <w, v> = sum over rows t, p of k(t, p) <w_t, v_p>. For |w|^2 a pair of examples is evaluated once and counted twice.
double KernelSegment::weights_dot(const double* w, const double* v, int n_jobs, Interrupt& interrupt) const {
    need_square();
    const bool same = w == v;
    const Index n = kernel_->num_support();
    std::vector<double> sums(num_examples(), 0.0);
    parallel_for(num_examples(), n_jobs, interrupt, [&](Index i, int) {
        const Index size = n_rows(i) * width_;
        if (size == 0) return;
        const double* mine = w + example_ptr_[i] * width_;
        std::vector<double> scratch;
        std::vector<double> product(size);
        Index stride = 0;
        const Index begin = same ? example_ptr_[i + 1] : 0;
        if (begin < n) {
            const double* k = rows(i, begin, scratch, stride);
            multiply({k, stride}, {v + begin * width_, width_}, n_rows(i), n - begin, width_, product.data(), width_);
            sums[i] = dot(mine, product.data(), size);
        }
        if (same) {
            multiply({gram(i), n_rows(i)}, {mine, width_}, n_rows(i), n_rows(i), width_, product.data(), width_);
            sums[i] = 2.0 * sums[i] + dot(mine, product.data(), size);
        }
    });
    double sum = 0;
    for (const double s : sums) sum += s;
    return sum;
}

Added KernelSegment::add_transpose(Index i, const double* slots, double scale, double* w) const {
    need_square();
    const Added added{transpose_norm2(i, slots), std::numeric_limits<double>::quiet_NaN()};
    axpy(scale, slots, w + example_ptr_[i] * width_, num_slots(i));
    return added;
}

double KernelSegment::transpose_norm2(Index i, const double* slots) const {
    need_square();
    const Index n = n_rows(i);
    const double* k = gram(i);
    double sum = 0;
    for (Index t = 0; t < n; ++t) {
        sum += k[t * n + t] * norm2(slots + t * width_, width_);
        for (Index s = 0; s < t; ++s) sum += 2.0 * k[t * n + s] * dot(slots + t * width_, slots + s * width_, width_);
    }
    return sum;
}

double KernelSegment::psi2_bound(Index i) const {
    need_square();
    return kernel_->psi2_bound(example_ptr_[i], example_ptr_[i + 1], gram(i));
}

}  // namespace partwise
