#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>

#include "data/proposals/look.h"
#include "data/proposals/parts.h"
#include "io/formats/compressed_file.h"
#include "io/formats/mds_values.h"
#include "io/mapped_file.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using Form = MdsEncoding::Form;

constexpr int64_t kMostTokensSeen = int64_t{1} << 23;

// A column that may be used; those pickled are not.
struct Usable {
  std::string name;
  std::size_t place;
  MdsEncoding encoding;
};

std::vector<Usable> usable_columns(const MdsIndex& index) {
  std::vector<Usable> usable;
  for (std::size_t i = 0; i < index.columns.size(); ++i) try {
      usable.push_back({index.columns[i].name, i, MdsEncoding::parse(index.columns[i].encoding)});
    } catch (const UserError&) {
      continue;
    }
  return usable;
}

// The first column that has one of the names and suits, else the first that suits.
template <class Suits>
const Usable* best(const std::vector<Usable>& columns, const std::set<std::string>& names,
                   const Suits& suits) {
  const Usable* first = nullptr;
  for (const Usable& column : columns) {
    if (!suits(column)) continue;
    if (names.contains(lower_case(column.name))) return &column;
    if (!first) first = &column;
  }
  return first;
}

bool is_whole_number(const Usable& column) {
  const MdsEncoding& encoding = column.encoding;
  return encoding.form == Form::kTextInteger || (encoding.form == Form::kNumber && !is_float(*encoding.type));
}

RecipeLines mds_lines(const fs::path& folder, const std::string& input, const std::string& target,
                      const std::string& comment) {
  return {{"kind", "\"mds\"", comment},
          path_line(folder),
          {"columns", "{ input = " + toml_text(input) + ", target = " + toml_text(target) + " }",
           "a model's names for those of the dataset"}};
}

// The first shard; if it is there compressed only, uncompressed in a folder of the system's, which is
// removed.
MappedFile first_shard(const fs::path& folder, const MdsShard& shard) {
  const fs::path raw = folder / shard.raw.name;
  std::error_code ignored;
  if (!shard.compressed || fs::exists(raw, ignored)) return MappedFile(raw);
  std::string scratch = fs::temp_directory_path() / "tutti-init-XXXXXX";
  if (!mkdtemp(scratch.data())) throw UserError({scratch}, "cannot be made");
  const auto remove = [](const std::string* path) { fs::remove_all(*path); };
  const std::unique_ptr<std::string, decltype(remove)> removed(&scratch, remove);
  const fs::path file = folder / shard.compressed->name;
  try {
    uncompress_file(file, shard.compression, shard.raw.bytes, scratch + "/shard");
  } catch (const UserError& error) {
    throw error.position().file.empty() ? UserError({file.string()}, error.message()) : error;
  }
  return MappedFile(scratch + "/shard");
}

// What the shard has of a column, of at most so many samples.
std::vector<MdsBytes> first_values(const MappedFile& shard, const MdsIndex& index, std::size_t column) {
  std::vector<MdsBytes> values;
  require_mds_shard(shard.bytes(), index.shards[0].samples);
  for (int64_t i = 0; i < index.shards[0].samples; ++i) {
    values.push_back(mds_value(shard.bytes(), index.columns, i, column));
    if (static_cast<int64_t>(values.size() * std::max<std::size_t>(values[0].size(), 1)) > kMostTokensSeen)
      break;
  }
  return values;
}

// The tokens of a value, as columns of bytes (int64) and arrays have them.
struct Tokens {
  MdsNumber type = MdsNumber::kInt64;
  MdsBytes bytes;
  int64_t count() const { return std::ssize(bytes) / bytes_of(type); }
};

Tokens tokens_of(const MdsEncoding& encoding, MdsBytes value) {
  if (encoding.form == Form::kBytes) return {MdsNumber::kInt64, value};
  const MdsArray array = mds_array(encoding, value);
  return {array.type, array.bytes};
}

int64_t largest(const Tokens& tokens) {
  int64_t most = 0;
  const auto bytes = static_cast<std::size_t>(bytes_of(tokens.type));
  for (std::size_t at = 0; at + bytes <= tokens.bytes.size(); at += bytes) {
    int64_t token = 0;  // little-endian; those below 0 do not count
    std::memcpy(&token, tokens.bytes.data() + at, bytes);
    if (bytes < sizeof token || token >= 0) most = std::max(most, token);
  }
  return most;
}

Proposal mds_tokens(const fs::path& folder, const MdsIndex& index, const Usable& column) {
  TokenSamples samples{.are_copied = true};
  int64_t end = 0;
  const MappedFile shard = first_shard(folder, index.shards[0]);
  try {
    for (const MdsBytes value : first_values(shard, index, column.place)) {
      const Tokens tokens = tokens_of(column.encoding, value);
      samples.sequence_length = tokens.count();
      end = std::max(end, largest(tokens) + 1);
    }
  } catch (const UserError& error) {
    throw UserError({(folder / index.shards[0].raw.name).string()}, error.message());
  }
  samples.vocabulary = vocabulary_for(end);
  const std::string text = std::to_string(index.samples()) + " samples of " +
                           std::to_string(samples.sequence_length) + " tokens, column " + column.name;
  Proposal proposal{
      .summary = text, .train = mds_lines(folder, column.name, column.name, text), .samples = samples};
  proposal.train.push_back({"num_classes", std::to_string(samples.vocabulary),
                            "tokens are below, in the first shard; better the tokenizer's size"});
  return proposal;
}

Proposal mds_images(const fs::path& folder, const MdsIndex& index, const Usable& image, const Usable& label) {
  Proposal proposal = photographs_in(
      folder, std::to_string(index.samples()) + " images, column " + image.name + ", and " + label.name);
  proposal.train = mds_lines(folder, image.name, label.name, proposal.summary);
  return proposal;
}

Proposal look_at_columns(const fs::path& folder, const MdsIndex& index) {
  static const std::set<std::string> kLabels = {"label", "labels", "class", "target", "y", "cls"};
  static const std::set<std::string> kImages = {"image", "images", "img", "x", "input", "jpg", "png"};
  static const std::set<std::string> kTokens = {"tokens", "input_ids", "ids"};
  const std::vector<Usable> columns = usable_columns(index);
  const Usable* image = best(columns, kImages, [](const Usable& column) {
    const bool is_named = column.encoding.form == Form::kBytes && kImages.contains(lower_case(column.name));
    return is_named || column.encoding.form == Form::kImageFile || column.encoding.form == Form::kPixels;
  });
  const Usable* label = best(columns, kLabels, [](const Usable& column) {
    return is_whole_number(column) ||
           (column.encoding.form == Form::kText && kLabels.contains(lower_case(column.name)));
  });
  if (image && label) return mds_images(folder, index, *image, *label);
  const Usable* tokens = best(columns, kTokens, [](const Usable& column) {
    return column.encoding.form == Form::kBytes ||
           (column.encoding.form == Form::kArray &&
            !is_float(column.encoding.type.value_or(MdsNumber::kInt64)));
  });
  if (tokens) return mds_tokens(folder, index, *tokens);
  std::string names;
  for (const MdsColumn& column : index.columns)
    names += (names.empty() ? "" : ", ") + column.name + " (" + column.encoding + ')';
  throw UserError({folder / kMdsIndexName},
                  "has no column of images with one of labels, and none of tokens: " + names +
                      "; docs/data.md shows a recipe for kind = \"mds\"");
}

bool has_index(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / kMdsIndexName, ignored);
}

}  // namespace

std::optional<Proposal> look_at_mds(const std::string& path) {
  const SplitFolders split = SplitFolders::of(path);
  const bool is_split = !has_index(path) && !split.train.empty();
  const fs::path train = is_split ? split.train : path;
  if (!has_index(train)) return std::nullopt;
  const MdsIndex index = read_mds_index(train / kMdsIndexName);
  Proposal proposal = look_at_columns(train, index);
  proposal.name = fs::path(last_name(path)).stem();
  proposal.count = index.samples();
  if (is_split && !split.eval.empty() && has_index(split.eval)) {
    proposal.eval = proposal.train;
    proposal.eval[0].comment.clear();
    proposal.eval[1].value = split.eval;
  }
  return proposal;
}

}  // namespace tutti
