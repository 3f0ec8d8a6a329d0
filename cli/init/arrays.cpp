#include <algorithm>
#include <cctype>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <utility>

#include "cli/init/look.h"
#include "io/hdf5/hdf5_listing.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using Numbers = ListedArray::Numbers;
using WordSet = std::set<std::string>;

constexpr int64_t kMostLabels = 1 << 20;
constexpr int64_t kMostPixels = 1 << 20;
constexpr double kIgnored = -100;  // the label of tokens that do not count

enum class Part { kTrain, kEval, kTest, kWhole };

// An array with what its name says: "x_test" is `x` of the part kTest.
struct NamedArray {
  ListedArray array;
  Part part = Part::kWhole;
  std::string stem;
  std::set<std::string> words;

  bool is_integer() const { return array.numbers == Numbers::kIntegers; }
  std::size_t dims() const { return array.shape.size(); }
};

struct Pair {
  const NamedArray* input = nullptr;
  const NamedArray* target = nullptr;
  bool copied = false;  // each token's label is the token itself, as for Hugging Face's causal models
};

// Of an HDF5 file, or of arrays of numpy.
std::vector<ListedArray> list_arrays(const std::string& file) {
  return is_numpy(file) ? list_numpy(file) : list_hdf5(file);
}

std::vector<double> first_numbers(const std::string& file, const ListedArray& array, int64_t rows) {
  return is_numpy(file) ? first_numpy_rows(file, array, rows) : first_rows(file, array, rows);
}

Part part_of(const std::string& word) {
  static const WordSet train = {"train", "training"}, test = {"test", "testing"};
  static const WordSet eval = {"val", "valid", "validation", "eval", "evaluation", "dev"};
  return train.contains(word)  ? Part::kTrain
         : eval.contains(word) ? Part::kEval
         : test.contains(word) ? Part::kTest
                               : Part::kWhole;
}

NamedArray named(const ListedArray& array) {
  NamedArray out{array};
  std::string word;
  const auto finish = [&] {
    if (word.empty()) return;
    const Part part = part_of(word);
    if (part == Part::kWhole) {
      out.stem += word + ' ';
      out.words.insert(word);
    } else {
      out.part = part;
    }
    word.clear();
  };
  for (const char c : array.path) {
    if (!std::isalnum(static_cast<unsigned char>(c))) finish();
    if (std::isalnum(static_cast<unsigned char>(c)))
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  finish();
  return out;
}

bool has_any(const std::set<std::string>& words, const WordSet& known) {
  return std::ranges::any_of(words, [&](const std::string& word) { return known.contains(word); });
}

int input_score(const NamedArray& one) {
  static const WordSet known = {"input",  "inputs",  "x",        "image",     "images", "img",    "data",
                                "pixels", "feature", "features", "input_ids", "ids",    "tokens", "samples"};
  if (one.dims() < 2 || one.array.numbers == Numbers::kOther || one.array.row_size() < 1) return 0;
  return 1 + 4 * has_any(one.words, known) + (one.dims() > 2);
}

int target_score(const NamedArray& one) {
  static const WordSet known = {"target", "targets", "y", "label", "labels", "class", "classes", "digit"};
  if (!one.is_integer() || one.dims() < 1) return 0;
  return 1 + 4 * has_any(one.words, known) + (one.dims() == 1);
}

bool are_tokens(const NamedArray& input, const NamedArray& target) {
  return input.is_integer() && input.dims() == 2 && input.array.shape == target.array.shape;
}

Pair best_pair(const std::vector<NamedArray>& arrays, Part part) {
  Pair best;
  int best_score = 0;
  for (const auto& input : arrays)
    for (const auto& target : arrays) {
      if (&input == &target || input.part != part || target.part != part) continue;
      if (input.array.rows() != target.array.rows() || input.array.rows() == 0) continue;
      if (target.dims() != 1 && !are_tokens(input, target)) continue;
      const int of_input = input_score(input), of_target = target_score(target);
      if (of_input == 0 || of_target == 0 || of_input + of_target <= best_score) continue;
      best_score = of_input + of_target;
      best = {&input, &target};
    }
  return best;
}

// The array of another part that goes with one of the training part.
const NamedArray* counterpart(const std::vector<NamedArray>& arrays, const NamedArray& of, Part part) {
  for (const auto& one : arrays) {
    const bool same_row =
        one.dims() == of.dims() &&
        std::equal(one.array.shape.begin() + 1, one.array.shape.end(), of.array.shape.begin() + 1);
    if (one.part == part && one.stem == of.stem && same_row && one.array.dtype == of.array.dtype) return &one;
  }
  return nullptr;
}

Pair eval_pair(const std::vector<NamedArray>& arrays, const Pair& train, std::initializer_list<Part> parts) {
  for (const Part part : parts) {
    const Pair pair{counterpart(arrays, *train.input, part), counterpart(arrays, *train.target, part),
                    train.copied};
    if (pair.input && pair.target && pair.input->array.rows() == pair.target->array.rows()) return pair;
  }
  return {};
}

std::string group_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

// The number of other arrays in the group of a pair.
int64_t others_in(const std::vector<NamedArray>& arrays, const std::string& group) {
  return std::ranges::count_if(arrays,
                               [&](const NamedArray& one) { return group_of(one.array.path) == group; }) -
         2;
}

std::string name_of(const NamedArray& one) { return one.array.path.substr(one.array.path.rfind('/') + 1); }

// The arrays of a Hugging Face tokenizer, which BERT reads by these names; none for other data.
std::vector<std::string> names_of_bert(const std::vector<NamedArray>& arrays, const Pair& pair) {
  const std::string group = group_of(pair.input->array.path);
  if (pair.copied || name_of(*pair.input) != "input_ids" || name_of(*pair.target) != "labels" ||
      group_of(pair.target->array.path) != group)
    return {};
  std::vector<std::string> names = {"input_ids", "labels"};
  for (const auto& one : arrays)
    for (const char* name : {"attention_mask", "token_type_ids"})
      if (group_of(one.array.path) == group && name_of(one) == name) names.emplace_back(name);
  return names.size() > 2 ? names : std::vector<std::string>();
}

// Group and names, unless models use them by default.
RecipeLines array_lines(const std::vector<NamedArray>& arrays, const Pair& pair, bool has_groups) {
  const std::string group = has_groups ? group_of(pair.input->array.path) : "";
  const bool together = has_groups && group == group_of(pair.target->array.path);
  const std::size_t cut = together && !group.empty() ? group.size() + 1 : 0;
  const std::string input = pair.input->array.path.substr(cut), target = pair.target->array.path.substr(cut);
  RecipeLines lines;
  if (cut > 0) lines.push_back({"group", toml_text(group)});
  if (const auto names = names_of_bert(arrays, pair); !names.empty()) {
    std::string list;
    for (const auto& name : names) list += (list.empty() ? "" : ", ") + toml_text(name);
    lines.push_back({"arrays", '[' + list + ']', "BERT reads them by these names"});
  } else if (input != "input" || target != "target") {
    lines.push_back({"arrays", "{ input = " + toml_text(input) + ", target = " + toml_text(target) + " }",
                     "models call them input and target"});
  } else if (others_in(arrays, together ? group : "") > 0) {
    lines.push_back({"arrays", "[\"input\", \"target\"]", "and not the others of the group"});
  }
  return lines;
}

std::string pair_text(const Pair& pair) {
  return pair.input->array.path + ": " + pair.input->array.description() + ", " + pair.target->array.path +
         ": " + pair.target->array.description();
}

RecipeLines data_lines(const std::string& file, const std::string& recipe_folder,
                       const std::vector<NamedArray>& arrays, const Pair& pair) {
  RecipeLines lines = {{"kind", is_numpy(file) ? "\"numpy\"" : "\"hdf5\"", pair_text(pair)},
                       {"path", recipe_path(file, recipe_folder), "relative to this file"}};
  for (auto& line : array_lines(arrays, pair, !is_numpy(file))) lines.push_back(std::move(line));
  return lines;
}

bool are_channels(int64_t size) { return size == 1 || size == 3 || size == 4; }

// Says which dimensions of the input are what.
void look_at_shape(FoundData& data, const ListedArray& input) {
  const auto& shape = input.shape;
  data.values = input.row_size();
  data.bytes = input.dtype == "uint8";
  data.integers = input.numbers == Numbers::kIntegers;
  if (shape.size() == 3) {
    data.height = shape[1], data.width = shape[2];
  } else if (shape.size() == 4 && are_channels(shape[3])) {
    data.height = shape[1], data.width = shape[2], data.channels = shape[3], data.channels_last = true;
  } else if (shape.size() == 4 && are_channels(shape[1])) {
    data.channels = shape[1], data.height = shape[2], data.width = shape[3];
  } else {
    return;
  }
  data.samples = SampleKind::kImages;
}

void look_at_pixels(FoundData& data, const std::string& file, const ListedArray& input) {
  const auto values =
      first_numbers(file, input, std::max<int64_t>(1, kMostPixels / std::max<int64_t>(1, data.values)));
  std::vector<uint8_t> pixels;
  for (const double value : values) pixels.push_back(static_cast<uint8_t>(value));
  const int64_t plane = data.channels_last ? 0 : data.height * data.width;
  measure_pixels(data, pixels, std::max<int64_t>(data.channels, 1), plane);
}

int64_t classes_of(const std::string& file, const ListedArray& labels) {
  if (labels.num_classes > 0) return labels.num_classes;
  const auto values = first_numbers(file, labels, kMostLabels / std::max<int64_t>(1, labels.row_size()));
  return values.empty() ? 0 : static_cast<int64_t>(*std::ranges::max_element(values)) + 1;
}

// A label below 0 is taken for the mark of targets that do not count. Returns the smallest label if there is
// none, and all are looked at; else 0.
int64_t look_at_labels(FoundData& data, const std::string& file, const NamedArray& labels) {
  constexpr int64_t kMostClasses = 1'000'000;
  const auto values =
      first_numbers(file, labels.array, kMostLabels / std::max<int64_t>(1, labels.array.row_size()));
  if (data.classes > kMostClasses)
    throw UserError({file}, labels.array.path + " has labels up to " + std::to_string(data.classes - 1) +
                                ", too many for classes; labels count from 0");
  if (values.empty()) return 0;
  const auto least = static_cast<int64_t>(*std::ranges::min_element(values));
  if (least < 0) data.ignored = least;
  const bool are_all = std::ssize(values) == labels.array.rows() * labels.array.row_size();
  return are_all ? std::max<int64_t>(least, 0) : 0;
}

std::vector<NamedArray> arrays_of(const std::string& file) {
  std::vector<NamedArray> arrays;
  for (const auto& array : list_arrays(file)) arrays.push_back(named(array));
  return arrays;
}

// The file beside this one that is evaluated on: val.h5 beside train.h5; "" = none.
std::string file_beside(const std::filesystem::path& file) {
  const std::string name = file.filename();
  const std::size_t at = name.rfind("train");
  if (at == std::string::npos) return "";
  const std::size_t end = at + (name.compare(at, 8, "training") == 0 ? 8 : 5);
  for (const char* word : {"val", "valid", "validation", "eval", "dev", "test"}) {
    const std::filesystem::path other = file.parent_path() / (name.substr(0, at) + word + name.substr(end));
    if (std::filesystem::exists(other) && (is_hdf5(other) || is_numpy(other))) return other;
  }
  return "";
}

RecipeLines eval_lines(const std::string& file, const std::string& recipe_folder,
                       const std::vector<NamedArray>& arrays, const Pair& train) {
  const Pair within = eval_pair(arrays, train, {Part::kEval, Part::kTest});
  if (within.input) return data_lines(file, recipe_folder, arrays, within);
  const std::string other = file_beside(file);
  if (other.empty()) return {};
  const std::vector<NamedArray> beside = arrays_of(other);
  const Pair pair = eval_pair(beside, train, {Part::kWhole, Part::kEval, Part::kTest, Part::kTrain});
  return pair.input ? data_lines(other, recipe_folder, beside, pair) : RecipeLines{};
}

// True if labels that count are the tokens at their places, next to each other: masked tokens lie apart.
bool are_copies(const std::string& file, const NamedArray& input, const NamedArray& target) {
  if (!are_tokens(input, target)) return false;
  const int64_t rows = kMostLabels / std::max<int64_t>(1, input.array.row_size());
  const auto tokens = first_numbers(file, input.array, rows),
             labels = first_numbers(file, target.array, rows);
  std::size_t counted = 0, neighbors = 0, others = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kIgnored) continue;
    if (labels[i] != tokens[i]) return false;
    ++counted;
    if (i == 0 || labels[i - 1] == kIgnored) continue;
    ++neighbors;
    if (labels[i - 1] != tokens[i]) ++others;
  }
  return others > 0 && 2 * neighbors > counted;
}

[[noreturn]] void refuse(const std::string& file, const std::vector<NamedArray>& arrays) {
  std::string there;
  for (const auto& one : arrays)
    there += (there.empty() ? "" : "; ") + one.array.path + ": " + one.array.description();
  throw UserError({file},
                  "found no array of inputs, [samples, ...], beside integer labels, [samples], or tokens and "
                  "targets of one shape; there is " +
                      (there.empty() ? "nothing" : there));
}

}  // namespace

FoundData look_into_arrays(const std::string& file, const std::string& recipe_folder) {
  const std::vector<NamedArray> arrays = arrays_of(file);
  Pair pair = best_pair(arrays, Part::kTrain);
  if (!pair.input) pair = best_pair(arrays, Part::kWhole);
  if (!pair.input) refuse(file, arrays);
  pair.copied = are_copies(file, *pair.input, *pair.target);
  const ListedArray &input = pair.input->array, &target = pair.target->array;
  FoundData data{.name = std::filesystem::path(file).stem(), .count = input.rows()};
  int64_t first_class = 0;
  data.classes = classes_of(file, target);
  if (!names_of_bert(arrays, pair).empty()) {
    data.samples = target.shape.size() == 1 ? SampleKind::kTextClasses : SampleKind::kMaskedTokens;
    data.sequence_length = input.shape[1];
    data.vocabulary = classes_of(file, input);
    if (data.samples == SampleKind::kMaskedTokens) data.vocabulary = std::max(data.vocabulary, data.classes);
  } else if (are_tokens(*pair.input, *pair.target)) {
    data.samples = SampleKind::kTokens;
    data.copied = pair.copied;
    data.sequence_length = input.shape[1];
    data.vocabulary = std::max(data.classes, classes_of(file, input));
  } else {
    look_at_shape(data, input);
    first_class = look_at_labels(data, file, *pair.target);
    data.classes -= first_class;
    if (data.bytes && data.samples == SampleKind::kImages) look_at_pixels(data, file, input);
  }
  const bool of_tokens = target.shape.size() > 1;
  data.found = pair_text(pair) + ", " + std::to_string(of_tokens ? data.vocabulary : data.classes) +
               (of_tokens           ? " tokens"
                : data.classes == 1 ? " class"
                                    : " classes");
  data.train = data_lines(file, recipe_folder, arrays, pair);
  data.eval = eval_lines(file, recipe_folder, arrays, pair);
  for (RecipeLines* lines : {&data.train, &data.eval})
    if (first_class > 0 && !lines->empty())
      lines->push_back(
          {"first_class", std::to_string(first_class), "the smallest label, which becomes class 0"});
  return data;
}

}  // namespace tutti
