#include "data/streams/text_stream.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <numeric>
#include <optional>
#include <utility>

#include "data/streams/command_bytes.h"
#include "data/streams/text_packing.h"
#include "data/tokenizers/tokenizer.h"
#include "recipe/command_keys.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/workers.h"

namespace tutti {
namespace {

constexpr std::size_t kLineBytes = std::size_t{256} << 10;  // of lines that threads share
constexpr std::string_view kSpaces = " \t\r\n";

// A line and what became of it.
struct Line {
  std::string text;
  int64_t number = 0;
  EncodedDocument document = {};
  std::string problem = "";
  std::exception_ptr error = nullptr;
};

std::unique_ptr<TextPacking> packing_of(const TextStream::Options& options) {
  if (!options.first_fit) return std::make_unique<CutPacking>(options.sequence_length);
  return std::make_unique<FirstFitPacking>(options.sequence_length, options.filling);
}

class TextPass final : public SamplePass {
 public:
  TextPass(const TextStream::Options& options, const std::string& command,
           std::shared_ptr<LeftOutRecords> left_out)
      : options_(options),
        name_(command_name(command)),
        left_out_(std::move(left_out)),
        bytes_(command),
        packing_(packing_of(options)),
        least_tokens_(options.first_fit ? 2 : 1),  // a single one has no target in its sample
        workers_(start_workers(options.how.threads)) {}

  StreamSamplePtr next() override {
    for (;;) {
      if (StreamSamplePtr sample = packing_->pop()) return sample;
      if (lines_.empty() && !read_lines()) {
        if (std::exchange(finished_, true)) return nullptr;
        packing_->finish();
        continue;
      }
      add(lines_.front());
      lines_.pop_front();
    }
  }

 private:
  // Reads a line, and more that are there already; a slow command is not waited for.
  bool read_lines() {
    std::size_t bytes = 0;
    do {
      const auto text = bytes_.line();
      if (!text) break;
      ++number_;
      bytes += text->size();
      if (text->find_first_not_of(kSpaces) != std::string_view::npos)
        lines_.push_back({std::string(*text), number_});
      else
        note_fruitless();
    } while (lines_.empty() || (bytes < kLineBytes && bytes_.has_line()));
    encode();
    return !lines_.empty();
  }

  void encode() {
    workers_->for_each(lines_.size(), [this](std::size_t i) {
      encode(lines_[i]);
      return !lines_[i].error && (options_.how.skip_bad || lines_[i].problem.empty());
    });
  }

  void encode(Line& line) const {
    try {
      line.document = encode_document(options_.how, line.text, options_.json_lines);
    } catch (const UserError& error) {
      line.problem = error.what();
    } catch (...) {
      line.error = std::current_exception();
    }
  }

  void add(const Line& line) {
    if (line.error) std::rethrow_exception(line.error);
    const bool teaches_nothing = line.document.teaches_nothing();
    if (line.problem.empty() && !teaches_nothing) {
      bad_ = 0;
      if (line.document.ids.size() < least_tokens_) return note_fruitless();
      fruitless_ = 0;
      return packing_->add(line.document);
    }
    const std::string what =
        "line " + std::to_string(line.number) + ": " + (teaches_nothing ? kTeachesNothing : line.problem);
    if (!options_.how.skip_bad && !teaches_nothing) throw UserError({name_}, what);
    if (++bad_ > LeftOutRecords::kMost)
      throw UserError({name_}, "so many lines in a row cannot be read: " + what);
    left_out_->note(line.number, name_ + ": " + what);
  }

  void note_fruitless() {
    if (++fruitless_ > kMostFruitless)
      throw UserError({name_}, "line " + std::to_string(number_) + ": more than " +
                                   std::to_string(kMostFruitless) +
                                   " lines in a row are blank or have too few tokens for a sample");
  }

  const TextStream::Options& options_;
  std::string name_;
  std::shared_ptr<LeftOutRecords> left_out_;
  CommandBytes bytes_;
  std::unique_ptr<TextPacking> packing_;
  std::size_t least_tokens_;         // of a document that is part of a sample
  int64_t number_ = 0;               // of lines read
  int64_t bad_ = 0, fruitless_ = 0;  // lines in a row
  std::deque<Line> lines_;
  bool finished_ = false;
  std::unique_ptr<Workers> workers_;  // last: their threads end before all else goes
};

SampleStream::Options with_identity(SampleStream::Options stream, const TextStream::Options& options) {
  const uint64_t parts[] = {options.how.tokenizer->digest(), static_cast<uint64_t>(options.sequence_length),
                            options.first_fit ? 1U : 0U};
  stream.identity = XXH3_64bits(parts, sizeof parts);
  return stream;
}

}  // namespace

TextStream::TextStream(const Options& options, SampleStream::Options stream)
    : options_(options),
      kept_(stream.kept),
      stream_(with_identity(stream, options), [this, command = stream.command] {
        return std::make_unique<TextPass>(options_, command, left_out_);
      }) {}

SampleSpec TextStream::spec() const {
  SampleSpec spec{.classes = options_.how.tokenizer->vocab_size()};
  for (const char* name : {"input", "target", "segments", "positions"}) {
    if (std::ssize(spec.shapes) == arrays()) break;
    spec.shapes[name] = {options_.sequence_length};
    spec.dtypes[name] = at::kLong;
  }
  return spec;
}

int64_t TextStream::memory_bytes() const {
  return kept_ * arrays() * options_.sequence_length * static_cast<int64_t>(sizeof(int32_t));
}

Batch TextStream::get(std::span<const int64_t> indices, const Epoch&) const {
  const Shape shape = {std::ssize(indices), options_.sequence_length};
  TensorTree::Children children;
  std::vector<int64_t*> rows;
  for (const char* name : {"input", "target", "segments", "positions"}) {
    if (std::ssize(rows) == arrays()) break;
    const at::Tensor array = at::empty(shape, at::kLong);
    rows.push_back(array.mutable_data_ptr<int64_t>());
    children.emplace_back(name, array);
  }
  for (const int64_t index : indices) {
    const auto sample = std::static_pointer_cast<const TextSample>(stream_.get(index));
    const std::vector<int32_t>* arrays[] = {&sample->input, &sample->target, &sample->segments,
                                            &sample->positions};
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = std::ranges::copy(*arrays[i], rows[i]).out;
  }
  return children;
}

void TextStream::scan() const {
  for (int64_t index = 0; index < size(); ++index) stream_.get(index);
}

}  // namespace tutti
