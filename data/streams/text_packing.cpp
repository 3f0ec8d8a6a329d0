#include "data/streams/text_packing.h"

#include <algorithm>
#include <span>

#include "tensors/ignored_target.h"

namespace tutti {
namespace {

int32_t counted_target(const EncodedDocument& tokens, std::size_t token) {
  const bool counts = tokens.counts.empty() || tokens.counts[token] != 0;
  return static_cast<int32_t>(counts ? static_cast<int64_t>(tokens.ids[token]) : kIgnoredTarget);
}

}  // namespace

void TextSample::add_to(StreamedHash& hash) const {
  for (const auto* row : {&input, &target, &positions}) hash.add(std::as_bytes(std::span(*row)));
}

void CutPacking::add(const EncodedDocument& document) {
  const auto used = static_cast<std::ptrdiff_t>(begin_);
  tokens_.ids.erase(tokens_.ids.begin(), tokens_.ids.begin() + used);
  if (!tokens_.counts.empty()) tokens_.counts.erase(tokens_.counts.begin(), tokens_.counts.begin() + used);
  begin_ = 0;
  tokens_.ids.insert(tokens_.ids.end(), document.ids.begin(), document.ids.end());
  tokens_.counts.insert(tokens_.counts.end(), document.counts.begin(), document.counts.end());
}

TextSamplePtr CutPacking::pop() {
  const auto length = static_cast<std::size_t>(length_);
  if (tokens_.ids.size() - begin_ < length + 1) return nullptr;
  const auto sample = std::make_shared<TextSample>();
  for (std::size_t token = begin_; token < begin_ + length; ++token) {
    sample->input.push_back(static_cast<int32_t>(tokens_.ids[token]));
    sample->target.push_back(counted_target(tokens_, token + 1));
  }
  begin_ += length;
  return sample;
}

void FirstFitPacking::add(const EncodedDocument& document) {
  const int64_t inputs = std::ssize(document.ids) - 1;
  for (int64_t at = 0; at < inputs; at += length_)
    place(document, static_cast<std::size_t>(at), std::min(length_, inputs - at));
}

void FirstFitPacking::place(const EncodedDocument& document, std::size_t begin, int64_t inputs) {
  const FirstFit::Place place = fit_.place(inputs);
  if (popped_ + std::ssize(begun_) < fit_.begun()) {
    const auto length = static_cast<std::size_t>(length_);
    const auto sample = std::make_shared<TextSample>();
    sample->input.assign(length, filling_);
    sample->target.assign(length, static_cast<int32_t>(kIgnoredTarget));
    sample->segments.assign(length, 0);
    sample->positions.assign(length, 0);
    begun_.push_back(sample);
  }
  TextSample& sample = *begun_[static_cast<std::size_t>(place.sample - popped_)];
  const int32_t before = place.begin == 0 ? 0 : sample.segments[static_cast<std::size_t>(place.begin - 1)];
  for (std::size_t i = 0; i < static_cast<std::size_t>(inputs); ++i) {
    const auto at = static_cast<std::size_t>(place.begin) + i;
    sample.input[at] = static_cast<int32_t>(document.ids[begin + i]);
    sample.target[at] = counted_target(document, begin + i + 1);
    sample.segments[at] = before + 1;
    sample.positions[at] = static_cast<int32_t>(i);
  }
}

TextSamplePtr FirstFitPacking::pop() {
  if (begun_.empty()) return nullptr;
  if (!fit_.is_complete(popped_) && !ended_) return nullptr;
  const TextSamplePtr sample = begun_.front();
  begun_.pop_front();
  ++popped_;
  return sample;
}

}  // namespace tutti
