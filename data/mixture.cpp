#include "data/mixture.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <utility>

#include "data/tokenizers/tokenizer.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/random.h"

namespace tutti {
namespace {

void require_alike(const Mixture::Source& first, const Mixture::Source& other) {
  const SampleSpec spec = first.data->spec(), other_spec = other.data->spec();
  const auto fail = [&](const std::string& what) {
    throw UserError(other.name + ": " + what + " than " + first.name + ", with which it is mixed");
  };
  for (const auto& [array, shape] : spec.shapes) {
    if (other_spec.shapes.count(array) == 0) fail("its samples have other arrays");
    if (spec.describe(array) != other_spec.describe(array))
      fail("'" + array + "' is " + other_spec.describe(array) + ", and " + spec.describe(array) +
           " elsewhere: another");
  }
  if (spec.shapes.size() != other_spec.shapes.size()) fail("its samples have other arrays");
  const auto tokenizers = {first.data->tokenizer(), other.data->tokenizer()};
  const auto digest = [](const auto& tokenizer) { return tokenizer ? tokenizer->digest() : 0; };
  if (digest(*tokenizers.begin()) != digest(*(tokenizers.end() - 1)))
    fail("its texts have another tokenizer");
}

}  // namespace

Mixture::Mixture(std::vector<Source> sources) : sources_(std::move(sources)), first_(1, 0), begin_(1, 0) {
  TUTTI_ASSERT(!sources_.empty(), "no sources");
  for (const Source& source : sources_) {
    require_alike(sources_.front(), source);
    first_.push_back(first_.back() + source.samples);
    begin_.push_back(begin_.back() + source.data->size());
  }
}

SampleSpec Mixture::spec() const {
  SampleSpec spec = sources_.front().data->spec();
  for (const Source& source : sources_) spec.classes = std::max(spec.classes, source.data->spec().classes);
  return spec;
}

std::size_t Mixture::source_of(int64_t index) const {
  TUTTI_ASSERT(index >= 0 && index < begin_.back(), "sample " + std::to_string(index));
  return static_cast<std::size_t>(std::ranges::upper_bound(begin_, index) - begin_.begin()) - 1;
}

Batch Mixture::get(std::span<const int64_t> indices, const Epoch& epoch) const {
  std::vector<std::vector<int64_t>> indices_of_sources(sources_.size()), rows(sources_.size());
  for (std::size_t row = 0; row < indices.size(); ++row) {
    const std::size_t source = source_of(indices[row]);
    indices_of_sources[source].push_back(indices[row] - begin_[source]);
    rows[source].push_back(static_cast<int64_t>(row));
  }
  std::vector<Batch> parts;
  std::vector<int64_t> order;  // of the rows of all parts
  for (std::size_t source = 0; source < sources_.size(); ++source) {
    if (indices_of_sources[source].empty() && (source > 0 || !indices.empty())) continue;
    parts.push_back(sources_[source].data->get(indices_of_sources[source], epoch));
    order.insert(order.end(), rows[source].begin(), rows[source].end());
  }
  if (parts.size() == 1) return parts.front();
  const at::Tensor places = at::tensor(order);
  TensorTree::Children children;
  for (const auto& [name, first] : parts.front().leaves()) {
    std::vector<at::Tensor> pieces;
    for (const Batch& part : parts) pieces.push_back(part.at(name).tensor());
    const at::Tensor joined = at::cat(pieces);
    children.emplace_back(name, at::empty_like(joined).index_copy_(0, places, joined));
  }
  return Batch(std::move(children));
}

int64_t Mixture::order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const {
  const int64_t place = Dataset::order(seed, epoch, position, shuffle);
  const auto source = static_cast<std::size_t>(std::ranges::upper_bound(first_, place) - first_.begin()) - 1;
  const Source& from = sources_[source];
  const int64_t taken = epoch * from.samples + place - first_[source], size = from.data->size();
  const uint64_t own = RandomKey(seed, "mixture").fold_in(source).bits();
  return begin_[source] + from.data->order(own, taken / size, taken % size, shuffle);
}

void Mixture::scan() const {
  for (const Source& source : sources_) source.data->scan();
}

uint64_t Mixture::digest() const {
  uint64_t digest = sources_.size();
  for (const Source& source : sources_) {
    const uint64_t source_digest[] = {source.data->digest(), static_cast<uint64_t>(source.samples)};
    digest = XXH3_64bits_withSeed(source_digest, sizeof source_digest, digest);
  }
  return digest;
}

std::string Mixture::advice() const {
  return first_text([](const Dataset& data) { return data.advice(); });
}

std::string Mixture::replaced() const {
  return first_text([](const Dataset& data) { return data.replaced(); });
}

std::string Mixture::first_text(std::string (*text_of)(const Dataset&)) const {
  for (const Source& source : sources_)
    if (std::string text = text_of(*source.data); !text.empty()) return text;
  return {};
}

}  // namespace tutti
