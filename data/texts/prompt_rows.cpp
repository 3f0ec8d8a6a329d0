#include "data/texts/prompt_rows.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "data/transforms/ignore_index.h"
#include "runtime/error.h"

namespace tutti {
namespace {

// Bytes that UTF-8 never has.
constexpr char kEndOfText = '\xfe', kFillingByte = '\xff';

at::Tensor filled_bytes(int64_t rows, int64_t bytes) {
  return at::full({rows, bytes}, static_cast<uint8_t>(kFillingByte), at::kByte);
}

void write_bytes(const std::string& text, const at::Tensor& rows, int64_t row) {
  std::ranges::copy(text, rows.mutable_data_ptr<uint8_t>() + row * rows.size(1));
}

}  // namespace

std::string list_bytes(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) bytes += text + kEndOfText;
  return bytes;
}

std::vector<std::string> texts_in_bytes(std::string_view bytes) {
  std::vector<std::string> texts;
  for (std::size_t end = bytes.find(kEndOfText); end != std::string_view::npos;
       end = bytes.find(kEndOfText)) {
    texts.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
  }
  return texts;
}

PromptRows::PromptRows(const std::vector<std::string>& files, const Options& options) : options_(options) {
  TaskMember prompt(options.prompt, {"prompt", "question", "input"}),
      reference(options.reference, {"reference", "references", "answer", "target"});
  for_each_task(files, "prompt",
                [&](const JsonDocument& line) { rows_.push_back(read(line, prompt, reference)); });
  add_line(advice_, guesses_text({{"prompt", &prompt}, {"reference", &reference}}));
  if (cut_ > 0)
    add_line(advice_, std::to_string(cut_) + " of " + std::to_string(size()) +
                          " prompts exceed sequence_length = " + std::to_string(options_.sequence_length) +
                          " and lose their beginning");
}

PromptRows::Row PromptRows::read(const JsonDocument& json, TaskMember& prompt, TaskMember& reference) {
  const std::string text = json.text(prompt.in(json));
  std::vector<int64_t> tokens = options_.tokens.encode(text);
  if (tokens.empty()) tokens.push_back(options_.tokens.start());
  const std::vector<std::string> references = json.list_of_texts(reference.in(json));
  if (references.empty()) throw UserError("there is no reference");
  const int64_t kept = std::min(std::ssize(tokens), options_.sequence_length);
  cut_ += kept < std::ssize(tokens) ? 1 : 0;
  Row row{{tokens.end() - kept, tokens.end()}, list_bytes(references)};
  length_ = std::max(length_, kept);
  bytes_ = std::max(bytes_, std::ssize(row.references));
  return row;
}

SampleSpec PromptRows::spec() const {
  SampleSpec spec{.shapes = {{"input", {length_}}, {"target", {length_}}, {"generation", {3}}},
                  .classes = options_.tokens.vocab_size()};
  for (const auto& [name, shape] : spec.shapes) spec.dtypes[name] = at::kLong;
  spec.shapes[kReferences] = {bytes_};
  if (!options_.stop.empty()) spec.shapes["stop"] = {std::ssize(list_bytes(options_.stop))};
  for (const auto& [name, shape] : spec.shapes) spec.dtypes.emplace(name, at::kByte);
  return spec;
}

Batch PromptRows::get(std::span<const int64_t> indices, const Epoch&) const {
  const int64_t rows = std::ssize(indices);
  const at::Tensor input = at::full({rows, length_}, 0, at::kLong),
                   target = at::full({rows, length_}, kIgnoredTarget, at::kLong),
                   generation = at::tensor({int64_t{0}, options_.max_new_tokens, options_.tokens.end()})
                                    .repeat({rows, 1}),
                   references = filled_bytes(rows, bytes_);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t index = indices[static_cast<std::size_t>(i)];
    TUTTI_ASSERT(index >= 0 && index < size(), "sample " + std::to_string(index));
    const Row& row = rows_[static_cast<std::size_t>(index)];
    std::ranges::copy(row.prompt, input.mutable_data_ptr<int64_t>() + i * length_);
    generation.mutable_data_ptr<int64_t>()[3 * i] = std::ssize(row.prompt);
    write_bytes(row.references, references, i);
  }
  TensorTree::Children arrays = {
      {"input", input}, {"target", target}, {"generation", generation}, {kReferences, references}};
  if (options_.stop.empty()) return arrays;
  const std::string stop = list_bytes(options_.stop);
  const at::Tensor stops = filled_bytes(rows, std::ssize(stop));
  for (int64_t i = 0; i < rows; ++i) write_bytes(stop, stops, i);
  arrays.emplace_back("stop", stops);
  return arrays;
}

uint64_t PromptRows::digest() const { return digest_of_samples(*this); }

int64_t PromptRows::memory_bytes() const {
  int64_t bytes = 0;
  for (const Row& row : rows_)
    bytes +=
        std::ssize(row.prompt) * int64_t{sizeof(int32_t)} + std::ssize(row.references) + int64_t{sizeof(Row)};
  return bytes;
}

}  // namespace tutti
