#include <algorithm>
#include <cctype>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "data/proposals/look.h"
#include "data/proposals/parts.h"
#include "io/hdf5/hdf5_listing.h"
#include "io/number_at.h"
#include "io/numpy/numpy_files.h"
#include "runtime/error.h"
#include "runtime/text.h"

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

ListedArray listed_array(const std::string& name, const NpyHeader& header) {
  const char type = header.type[1];
  const std::string bits = std::to_string(8 * header.item_bytes);
  ListedArray array{.path = name, .shape = header.shape};
  array.numbers = type == 'b' ? Numbers::kBooleans : type == 'f' ? Numbers::kFloats : Numbers::kIntegers;
  array.dtype = type == 'b' ? "bool" : (type == 'f' ? "float" : type == 'u' ? "uint" : "int") + bits;
  return array;
}

template <class Number>
double as_double(std::span<const std::byte> bytes, std::size_t place) {
  return static_cast<double>(number_at<Number>(bytes, place));
}

double number_of(const std::string& type, std::span<const std::byte> bytes, std::size_t place) {
  static const std::map<std::string, double (*)(std::span<const std::byte>, std::size_t)> readers = {
      {"b1", as_double<uint8_t>},  {"u1", as_double<uint8_t>},  {"i1", as_double<int8_t>},
      {"u2", as_double<uint16_t>}, {"i2", as_double<int16_t>},  {"u4", as_double<uint32_t>},
      {"i4", as_double<int32_t>},  {"u8", as_double<uint64_t>}, {"i8", as_double<int64_t>},
      {"f4", as_double<float>},    {"f8", as_double<double>}};
  const auto reader = readers.find(type.substr(1));
  return reader == readers.end() ? 0 : reader->second(bytes, place);
}

std::vector<double> first_numpy_numbers(const NumpyFiles& files, const ListedArray& array, int64_t rows) {
  const NpyHeader header = files.header(array.path);
  const NumpyFiles::Content content = files.read(array.path);
  const auto count = static_cast<std::size_t>(std::min(rows, array.rows()) * array.row_size());
  std::vector<double> numbers;
  for (std::size_t i = 0; i < count; ++i)
    numbers.push_back(number_of(header.type, content.bytes, header.at + i * header.item_bytes));
  return numbers;
}

// As list_hdf5 and first_rows, also of an .npz file or a folder of .npy files.
std::vector<ListedArray> list_arrays(const std::string& path) {
  if (!is_numpy(path)) return list_hdf5(path);
  const NumpyFiles files(path);
  std::vector<ListedArray> arrays;
  for (const std::string& name : files.names()) arrays.push_back(listed_array(name, files.header(name)));
  return arrays;
}

std::vector<double> first_numbers(const std::string& path, const ListedArray& array, int64_t rows) {
  return is_numpy(path) ? first_numpy_numbers(NumpyFiles(path), array, rows) : first_rows(path, array, rows);
}

Part part_of(const std::string& word) {
  if (is_trained_name(word)) return Part::kTrain;
  if (!is_evaluated_name(word)) return Part::kWhole;
  return word.starts_with("test") ? Part::kTest : Part::kEval;
}

NamedArray named(const ListedArray& array) {
  NamedArray out{array};
  std::string words = lower_case(array.path);
  std::ranges::replace_if(
      words, [](unsigned char c) { return !std::isalnum(c); }, ' ');
  std::istringstream stream(words);
  for (std::string word; stream >> word;) {
    const Part part = part_of(word);
    if (part != Part::kWhole) {
      out.part = part;
      continue;
    }
    out.stem += word + ' ';
    out.words.insert(word);
  }
  return out;
}

bool has_any(const std::set<std::string>& words, const WordSet& known) {
  return std::ranges::any_of(words, [&](const std::string& word) { return known.contains(word); });
}

int input_score(const NamedArray& array) {
  static const WordSet known = {"input",  "inputs",  "x",        "image",     "images", "img",    "data",
                                "pixels", "feature", "features", "input_ids", "ids",    "tokens", "samples"};
  if (array.dims() < 2 || array.array.numbers == Numbers::kOther || array.array.row_size() < 1) return 0;
  return 1 + 4 * has_any(array.words, known) + (array.dims() > 2);
}

int target_score(const NamedArray& array) {
  static const WordSet known = {"target", "targets", "y", "label", "labels", "class", "classes", "digit"};
  if (!array.is_integer() || array.dims() < 1) return 0;
  return 1 + 4 * has_any(array.words, known) + (array.dims() == 1);
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
      const int score = input_score(input), labels_score = target_score(target);
      if (score == 0 || labels_score == 0 || score + labels_score <= best_score) continue;
      best_score = score + labels_score;
      best = {&input, &target};
    }
  return best;
}

// The array of another part that goes with an array of the training part.
const NamedArray* counterpart(const std::vector<NamedArray>& arrays, const NamedArray& trained, Part part) {
  const auto row = [](const NamedArray& named) {
    return std::span(named.array.shape).subspan(std::min<std::size_t>(1, named.dims()));
  };
  for (const auto& other : arrays)
    if (other.part == part && other.stem == trained.stem && other.dims() == trained.dims() &&
        std::ranges::equal(row(other), row(trained)) && other.array.dtype == trained.array.dtype)
      return &other;
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
                               [&](const NamedArray& other) { return group_of(other.array.path) == group; }) -
         2;
}

std::string name_of(const NamedArray& named) {
  return named.array.path.substr(named.array.path.rfind('/') + 1);
}

// The arrays of a Hugging Face tokenizer, which BERT reads by these names; none for other data.
std::vector<std::string> names_of_bert(const std::vector<NamedArray>& arrays, const Pair& pair) {
  const std::string group = group_of(pair.input->array.path);
  if (pair.copied || name_of(*pair.input) != "input_ids" || name_of(*pair.target) != "labels" ||
      group_of(pair.target->array.path) != group)
    return {};
  std::vector<std::string> names = {"input_ids", "labels"};
  for (const auto& other : arrays)
    for (const char* name : {"attention_mask", "token_type_ids"})
      if (group_of(other.array.path) == group && name_of(other) == name) names.emplace_back(name);
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
    lines.push_back({"arrays", toml_texts(names), "BERT reads them by these names"});
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

RecipeLines data_lines(const std::string& file, const std::vector<NamedArray>& arrays, const Pair& pair) {
  RecipeLines lines = {{"kind", is_numpy(file) ? "\"numpy\"" : "\"hdf5\"", pair_text(pair)}, path_line(file)};
  for (auto& line : array_lines(arrays, pair, !is_numpy(file))) lines.push_back(std::move(line));
  return lines;
}

bool are_channels(int64_t size) { return size == 1 || size == 3 || size == 4; }

// Which dimensions of an array of images are what.
struct ImageShape {
  int64_t height = 0, width = 0;
  int64_t channels = 0;  // 0: no dimension
  bool channels_last = false;
};

std::optional<ImageShape> image_shape(const std::vector<int64_t>& shape) {
  if (shape.size() == 3) return ImageShape{.height = shape[1], .width = shape[2]};
  if (shape.size() == 4 && are_channels(shape[3])) return ImageShape{shape[1], shape[2], shape[3], true};
  if (shape.size() == 4 && are_channels(shape[1])) return ImageShape{shape[2], shape[3], shape[1], false};
  return std::nullopt;
}

bool are_bytes(const ListedArray& input) { return input.dtype == "uint8"; }

RecipeLines lines_of_pixels(const std::string& file, const ListedArray& input, const ImageShape& image) {
  const auto values = first_numbers(file, input, std::max<int64_t>(1, kMostPixels / input.row_size()));
  std::vector<uint8_t> pixels;
  for (const double value : values) pixels.push_back(static_cast<uint8_t>(value));
  return measured_pixel_lines(pixels, std::max<int64_t>(image.channels, 1),
                              image.channels_last ? 0 : image.height * image.width);
}

RecipeLines number_lines(const std::string& file, const ListedArray& input,
                         const std::optional<ImageShape>& image) {
  RecipeLines lines;
  if (are_bytes(input) && image)
    lines = lines_of_pixels(file, input, *image);
  else if (are_bytes(input))
    lines = {{"scale", "0.00392157", "bytes become numbers in [0, 1]"}};
  else if (input.numbers == Numbers::kIntegers)
    lines = {{"scale", "1", "integers become floats; mean and std may follow"}};
  if (image && image->channels > 0 && (image->channels_last || are_bytes(input)))
    lines.insert(lines.begin(), {"layout", image->channels_last ? "\"NHWC\"" : "\"NCHW\"",
                                 "the order of dimensions in the file"});
  return lines;
}

std::vector<double> first_labels(const std::string& file, const ListedArray& labels) {
  return first_numbers(file, labels, kMostLabels / std::max<int64_t>(1, labels.row_size()));
}

int64_t classes_of(const std::string& file, const ListedArray& labels) {
  if (labels.num_classes > 0) return labels.num_classes;
  const auto values = first_labels(file, labels);
  return values.empty() ? 0 : static_cast<int64_t>(*std::ranges::max_element(values)) + 1;
}

// The smallest label.
int64_t least_label(const std::string& file, const ListedArray& labels, int64_t classes) {
  constexpr int64_t kMostClasses = 1'000'000;
  const auto values = first_labels(file, labels);
  if (classes > kMostClasses)
    throw UserError({file}, labels.path + " has labels up to " + std::to_string(classes - 1) +
                                ", too many for classes; labels count from 0");
  const auto least = values.empty() ? 0 : static_cast<int64_t>(*std::ranges::min_element(values));
  const bool are_all = std::ssize(values) == labels.rows() * labels.row_size();
  return are_all ? least : std::min<int64_t>(least, 0);
}

std::vector<NamedArray> arrays_of(const std::string& file) {
  std::vector<NamedArray> arrays;
  for (const auto& array : list_arrays(file)) arrays.push_back(named(array));
  return arrays;
}

bool has_arrays(const std::string& path) { return is_hdf5(path) || is_numpy(path); }

RecipeLines eval_lines(const std::string& file, const std::vector<NamedArray>& arrays, const Pair& train) {
  const Pair within = eval_pair(arrays, train, {Part::kEval, Part::kTest});
  if (within.input) return data_lines(file, arrays, within);
  const std::string other = file_to_evaluate(file, has_arrays);
  if (other.empty()) return {};
  const std::vector<NamedArray> beside = arrays_of(other);
  const Pair pair = eval_pair(beside, train, {Part::kWhole, Part::kEval, Part::kTest, Part::kTrain});
  return pair.input ? data_lines(other, beside, pair) : RecipeLines{};
}

// True if labels that count are the tokens at their places, next to each other: masked tokens lie apart.
bool are_copies(const std::string& file, const NamedArray& input, const NamedArray& target) {
  if (!are_tokens(input, target)) return false;
  const auto tokens = first_labels(file, input.array), labels = first_labels(file, target.array);
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
  for (const auto& named : arrays)
    there += (there.empty() ? "" : "; ") + named.array.path + ": " + named.array.description();
  throw UserError({file},
                  "found no array of inputs, [samples, ...], beside integer labels, [samples], or tokens and "
                  "targets of one shape; there is " +
                      (there.empty() ? "nothing" : there));
}

Pair training_pair(const std::string& file, const std::vector<NamedArray>& arrays) {
  Pair pair = best_pair(arrays, Part::kTrain);
  if (!pair.input) pair = best_pair(arrays, Part::kWhole);
  if (!pair.input) refuse(file, arrays);
  pair.copied = are_copies(file, *pair.input, *pair.target);
  return pair;
}

// For language models. Returns the line's end.
std::string add_tokens(Proposal& proposal, const std::string& file, const Pair& pair, bool is_bert) {
  const ListedArray &input = pair.input->array, &target = pair.target->array;
  const int64_t length = input.shape[1], classes = classes_of(file, target), end = classes_of(file, input);
  const int64_t vocabulary = std::max(end, classes);
  if (is_bert && pair.target->dims() == 1) {
    proposal.samples = TextSamples{length, end, classes};
    return std::to_string(classes) + (classes == 1 ? " class" : " classes");
  }
  if (is_bert)
    proposal.samples = MaskedTokenSamples{length, vocabulary};
  else
    proposal.samples = TokenSamples{length, vocabulary, pair.copied};
  return std::to_string(vocabulary) + " tokens";
}

// For classifiers. Returns the line's end. A label below 0 is taken for the mark of targets that do not
// count.
std::string add_classes(Proposal& proposal, const std::string& file, const Pair& pair) {
  const ListedArray &input = pair.input->array, &target = pair.target->array;
  int64_t classes = classes_of(file, target);
  const int64_t least = least_label(file, target, classes);
  if (least < 0)
    proposal.model.push_back({"ignore_index", std::to_string(least), "targets with this label do not count"});
  if (least > 0) {
    classes -= least;
    for (RecipeLines* lines : {&proposal.train, &proposal.eval})
      if (!lines->empty())
        lines->push_back({"first_class", std::to_string(least), "the smallest label, which becomes class 0"});
  }
  const auto image = image_shape(input.shape);
  if (image)
    proposal.samples = ImageSamples{.height = image->height,
                                    .width = image->width,
                                    .have_channels = are_bytes(input) || image->channels > 0};
  proposal.numbers = number_lines(file, input, image);
  return std::to_string(classes) + (classes == 1 ? " class" : " classes");
}

}  // namespace

std::optional<Proposal> look_at_arrays(const std::string& path) {
  if (!has_arrays(path)) return std::nullopt;
  const std::vector<NamedArray> arrays = arrays_of(path);
  const Pair pair = training_pair(path, arrays);
  const bool is_bert = !names_of_bert(arrays, pair).empty();
  Proposal proposal{.name = std::filesystem::path(path).stem(),
                    .summary = pair_text(pair) + ", ",
                    .train = data_lines(path, arrays, pair),
                    .eval = eval_lines(path, arrays, pair),
                    .count = pair.input->array.rows()};
  proposal.summary += is_bert || are_tokens(*pair.input, *pair.target)
                          ? add_tokens(proposal, path, pair, is_bert)
                          : add_classes(proposal, path, pair);
  return proposal;
}

}  // namespace tutti
