#include "data/readers/mds_dataset.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <set>

#include "data/readers/opened.h"
#include "data/shards/fetch_command.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

using Form = MdsEncoding::Form;
using SamplesPtr = std::shared_ptr<const MdsSamples>;

constexpr uint64_t kBytesOfMb = 1'000'000;
constexpr int64_t kMostScanned = int64_t{64} << 20;  // numbers of which the largest is looked for
constexpr std::size_t kMostTextClasses = 1'000'000;

// Runs `read`; errors without a file get that of the sample, and its place.
template <class Read>
auto reading(const MdsSamples& samples, int64_t index, const std::string& column, const Read& read) try {
  return read();
} catch (const UserError& error) {
  if (!error.position().file.empty()) throw;
  throw UserError({samples.path(index)}, samples.place(index) + " (sample " + std::to_string(index) +
                                             "): column '" + column + "' " + error.message());
}

MdsEncoding encoding_of(const MdsSamples& samples, std::size_t column) {
  try {
    return MdsEncoding::parse(samples.columns()[column].encoding);
  } catch (const UserError& error) {
    throw UserError({samples.path(0)}, "column '" + samples.columns()[column].name + "' " + error.message());
  }
}

std::string text_of(MdsBytes value) { return {reinterpret_cast<const char*>(value.data()), value.size()}; }

// Calls `use` with the value of each sample.
template <class Use>
void on_values(const MdsSamples& samples, std::size_t column, const Use& use) {
  for (int64_t i = 0; i < samples.size(); ++i) {
    const auto sample = samples.sample(i);
    reading(samples, i, samples.columns()[column].name, [&] { use(sample.value(column)); });
  }
}

[[noreturn]] void fail_unknown_classes(const MdsSamples& samples, const std::string& key, const char* why) {
  throw UserError({samples.path(0)}, "the classes are not known before all samples are read, which " +
                                         std::string(why) + ": give " + key);
}

std::vector<std::string> texts_of(const MdsSamples& samples, std::size_t column) {
  if (samples.is_remote()) fail_unknown_classes(samples, "classes or classes_from", "are fetched one by one");
  std::set<std::string> texts;
  on_values(samples, column, [&](MdsBytes value) {
    if (texts.size() > kMostTextClasses) throw UserError("has too many texts to be classes");
    texts.insert(text_of(value));
  });
  return {texts.begin(), texts.end()};
}

LabelRange class_range_of(const MdsSamples& samples, const MdsDataset::Column& column, int64_t ignore_index) {
  const auto count = static_cast<int64_t>(column.numbers.row_bytes() / sizeof(int64_t));
  if (samples.is_remote()) fail_unknown_classes(samples, "num_classes", "are fetched one by one");
  if (count * samples.size() > kMostScanned) fail_unknown_classes(samples, "num_classes", "takes long");
  std::vector<int64_t> row(static_cast<std::size_t>(count));
  LabelCounter counter;
  int64_t sample = 0;
  on_values(samples, column.place, [&](MdsBytes value) {
    column.numbers.write(value, reinterpret_cast<std::byte*>(row.data()));
    for (const int64_t number : row) {
      if (number < 0 && number != kIgnoredTarget && number != ignore_index)
        throw UserError("has " + std::to_string(number) + ", which is no class");
      if (number >= kMaxInferredClasses)
        throw UserError("has " + std::to_string(number) + ", which is not a class");
      if (number >= 0 && number != ignore_index) counter.add(number, sample);
    }
    ++sample;
  });
  return counter.range();
}

void require_class(int64_t number, int64_t classes, int64_t ignore_index) {
  const bool is_class = number >= 0 && number < classes;
  if (classes > 0 && !is_class && number != kIgnoredTarget && number != ignore_index)
    throw UserError("has " + std::to_string(number) + ", which is not in [0, " + std::to_string(classes) +
                    ")");
}

// Names in batches for those of columns.
ArrayNames names_of(const MdsSamples& samples, const MdsOptions& options) {
  if (options.columns) return array_names(*options.columns);
  ArrayNames names;
  for (const MdsColumn& column : samples.columns()) names.emplace_back(column.name, column.name);
  return names;
}

SamplesPtr samples_of(const MdsOptions& options) {
  const auto most = static_cast<uint64_t>(options.cache_mb.value_or(0) * static_cast<double>(kBytesOfMb));
  return std::make_shared<const MdsSamples>(
      ShardFolder::Options{options.path, options.remote, options.fetch, most}, options.shuffle_block);
}

// An input of integers as many as its targets has their classes: both are tokens.
void mark_tokens(MdsDataset::Layout& layout) {
  const auto target = std::ranges::find(layout.columns, kTargetArray, &MdsDataset::Column::array);
  const auto input = std::ranges::find(layout.columns, kInputArray, &MdsDataset::Column::array);
  if (target == layout.columns.end() || input == layout.columns.end()) return;
  const bool are_alike = !input->numbers.shape().empty() && input->numbers.shape() == target->numbers.shape();
  input->has_classes = are_alike && input->numbers.dtype() == at::kLong && target->has_classes;
}

// The layout without its number of classes.
MdsDataset::Layout layout_of(const MdsSamples& samples, const MdsOptions& options) {
  MdsDataset::Layout layout{.names = ClassTable(given_classes(options)),
                            .on_bad_sample = options.on_bad_sample};
  const auto first = samples.sample(0);
  for (const auto& [array, name] : names_of(samples, options)) {
    const std::size_t place = samples.column(name);
    const MdsEncoding encoding = encoding_of(samples, place);
    const bool is_target = array == kTargetArray;
    if (is_target && encoding.form == Form::kText) {
      layout.text_target = place;
      continue;
    }
    MdsArrayColumn numbers = reading(samples, 0, name, [&] {
      return MdsArrayColumn(encoding, first.value(place),
                            {options.dtype, is_target, options.max_image_pixels});
    });
    const bool has_classes = numbers.dtype() == at::kLong && is_target;
    layout.columns.push_back({array, place, std::move(numbers), has_classes});
  }
  mark_tokens(layout);
  return layout;
}

void count_classes(const MdsSamples& samples, const MdsOptions& options, MdsDataset::Layout& layout) {
  if (layout.text_target && layout.names.names().empty())
    layout.names = ClassTable(texts_of(samples, *layout.text_target));
  const auto named = std::ssize(layout.names.names());
  if (options.num_classes > 0 && named > options.num_classes)
    throw UserError({options.path}, "has " + std::to_string(named) + " classes, more than num_classes = " +
                                        std::to_string(options.num_classes));
  layout.classes = std::max<int64_t>(named, options.num_classes);
  if (layout.classes > 0) return;
  const auto has_classes = [](const MdsDataset::Column& column) { return column.has_classes; };
  const bool are_tokens = std::ranges::count_if(layout.columns, has_classes) > 1;
  for (const MdsDataset::Column& column : layout.columns) {
    if (!column.has_classes) continue;
    const LabelRange range = class_range_of(samples, column, layout.ignore_index);
    layout.classes = std::max(layout.classes, range.largest + 1);
    if (!are_tokens) layout.labels = range;
  }
}

// Images and their classes, for ImageFiles.
class MdsImages final : public ImageSource {
 public:
  MdsImages(SamplesPtr samples, MdsDataset::Layout layout, std::size_t image)
      : samples_(std::move(samples)),
        layout_(std::move(layout)),
        image_(image),
        encoding_(encoding_of(*samples_, image)) {}

  int64_t size() const override { return samples_->size(); }
  int64_t classes() const override { return layout_.classes; }
  bool knows_targets() const override { return !samples_->is_remote(); }
  LabelRange labels() const override { return layout_.labels; }
  std::string name(int64_t index) const override { return samples_->path(index); }
  std::string place(int64_t index) const override { return samples_->place(index); }
  uint64_t digest() const override { return samples_->digest(); }
  void scan() const override { samples_->verify(); }
  std::string advice() const override { return samples_->advice(); }
  std::optional<int64_t> order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const override {
    return samples_->order(seed, epoch, position, shuffle);
  }

  int64_t target(int64_t index) const override {
    const auto sample = samples_->sample(index);
    if (layout_.text_target) return layout_.names.number_of_name(text_of(sample.value(*layout_.text_target)));
    int64_t number = 0;
    const auto target = std::ranges::find(layout_.columns, kTargetArray, &MdsDataset::Column::array);
    target->numbers.write(sample.value(target->place), reinterpret_cast<std::byte*>(&number));
    require_class(number, layout_.classes, layout_.ignore_index);
    return number;
  }
  std::span<const std::byte> read(int64_t index, std::vector<std::byte>& buffer) const override {
    const auto sample = samples_->sample(index);
    const MdsBytes bytes = sample.value(image_);
    buffer.assign(bytes.begin(), bytes.end());
    return buffer;
  }
  at::Tensor image(int64_t index, const ChoosePart& choose, const Decoding& decoding) const override {
    const auto sample = samples_->sample(index);
    return mds_image(encoding_, sample.value(image_), choose, decoding);
  }
  ImageSize image_size(int64_t index, int64_t most_pixels) const override {
    if (!samples_->is_there(index)) throw UserError("has not been fetched");
    const auto sample = samples_->sample(index);
    return mds_image_size(encoding_, sample.value(image_), most_pixels);
  }

 private:
  SamplesPtr samples_;
  MdsDataset::Layout layout_;
  std::size_t image_;
  MdsEncoding encoding_;
};

// The place of the image if the columns are what ImageFiles have.
std::optional<std::size_t> image_of_pair(const MdsSamples& samples, const MdsOptions& options) {
  const auto names = names_of(samples, options);
  std::optional<std::size_t> image, target;
  for (const auto& [array, name] : names) {
    if (array == kInputArray) image = samples.column(name);
    if (array == kTargetArray) target = samples.column(name);
  }
  if (names.size() != 2 || !image || !target) return std::nullopt;
  const MdsEncoding target_encoding = encoding_of(samples, *target),
                    image_encoding = encoding_of(samples, *image);
  const bool is_class = target_encoding.form == Form::kText || target_encoding.form == Form::kTextInteger ||
                        (target_encoding.form == Form::kNumber && !is_float(*target_encoding.type));
  if (!is_class) return std::nullopt;
  if (image_encoding.form == Form::kBytes && !is_image(image_encoding, samples.sample(0).value(*image)))
    return std::nullopt;
  return is_image(image_encoding, {}) || image_encoding.form == Form::kBytes ? image : std::nullopt;
}

}  // namespace

DatasetPtr open_mds(const MdsOptions& options, int64_t ignore_index) {
  const SamplesPtr samples = samples_of(options);
  const std::optional<std::size_t> image = image_of_pair(*samples, options);
  MdsOptions layout_options = options;
  if (image) {  // which is not tried: the first may be damaged
    layout_options.columns = Setting(Setting::Table{}, "", {});
    for (const auto& [array, name] : names_of(*samples, options))
      if (array == kTargetArray) layout_options.columns->table().emplace_back(array, Setting(name, "", {}));
  }
  MdsDataset::Layout layout = layout_of(*samples, layout_options);
  layout.ignore_index = ignore_index;
  count_classes(*samples, options, layout);
  if (!image) return std::make_shared<const MdsDataset>(samples, std::move(layout));
  const auto images = std::make_shared<const MdsImages>(samples, std::move(layout), *image);
  return std::make_shared<const ImageFiles>(images, options);
}

std::vector<std::string> mds_classes(const MdsOptions& options) {
  if (std::vector<std::string> given = given_classes(options); !given.empty()) return given;
  const SamplesPtr samples = samples_of(options);
  for (const auto& [array, name] : names_of(*samples, options)) {
    const std::size_t place = samples->column(name);
    if (array == kTargetArray && encoding_of(*samples, place).form == Form::kText)
      return texts_of(*samples, place);
  }
  return {};
}

// Where a sample's values go.
struct MdsDataset::Row {
  std::vector<std::byte*> columns;
  int64_t* text_target = nullptr;
};

MdsDataset::MdsDataset(SamplesPtr samples, Layout layout)
    : samples_(std::move(samples)), layout_(std::move(layout)) {}

SampleSpec MdsDataset::spec() const {
  SampleSpec spec{.classes = layout_.classes};
  for (const Column& column : layout_.columns) {
    spec.shapes[column.array] = column.numbers.shape();
    spec.dtypes[column.array] = column.numbers.dtype();
  }
  if (!layout_.text_target) return spec;
  spec.shapes[kTargetArray] = {};
  spec.dtypes[kTargetArray] = at::kLong;
  return spec;
}

void MdsDataset::read(int64_t index, const Row& row) const {
  const auto sample = samples_->sample(index);
  for (std::size_t i = 0; i < layout_.columns.size(); ++i) {
    const Column& column = layout_.columns[i];
    reading(*samples_, index, samples_->columns()[column.place].name, [&] {
      column.numbers.write(sample.value(column.place), row.columns[i]);
      if (!column.has_classes) return;
      const auto* numbers = reinterpret_cast<const int64_t*>(row.columns[i]);
      for (std::size_t n = 0; n < column.numbers.row_bytes() / sizeof(int64_t); ++n)
        require_class(numbers[n], layout_.classes, layout_.ignore_index);
    });
  }
  if (!layout_.text_target) return;
  reading(*samples_, index, samples_->columns()[*layout_.text_target].name, [&] {
    *row.text_target = layout_.names.number_of_name(text_of(sample.value(*layout_.text_target)));
  });
}

void MdsDataset::read_or_replace(int64_t index, const Row& row) const {
  if (layout_.on_bad_sample == OnBadSample::kError) return read(index, row);
  for (int64_t i = 0; i < ReplacedSamples::kMost; ++i) try {
      return read((index + i) % size(), row);
    } catch (const UserError& error) {
      replaced_.note(error.what());
    }
  throw UserError({samples_->path(index)}, "sample " + std::to_string(index) + " and the " +
                                               std::to_string(ReplacedSamples::kMost - 1) +
                                               " after it cannot be read: " + replaced());
}

Batch MdsDataset::get(std::span<const int64_t> indices, const Epoch&) const {
  TensorTree::Children children;
  std::vector<std::byte*> firsts;
  const auto rows = static_cast<int64_t>(indices.size());
  for (const Column& column : layout_.columns) {
    Shape shape = column.numbers.shape();
    shape.insert(shape.begin(), rows);
    at::Tensor tensor = at::empty(shape, column.numbers.dtype());
    firsts.push_back(static_cast<std::byte*>(tensor.data_ptr()));
    children.emplace_back(column.array, std::move(tensor));
  }
  int64_t* targets = nullptr;
  if (layout_.text_target) {
    at::Tensor tensor = at::empty({rows}, at::kLong);
    targets = tensor.data_ptr<int64_t>();
    children.emplace_back(kTargetArray, std::move(tensor));
  }
  for (std::size_t i = 0; i < indices.size(); ++i) {
    Row row{firsts, targets ? targets + i : nullptr};
    for (std::size_t c = 0; c < firsts.size(); ++c)
      row.columns[c] += i * layout_.columns[c].numbers.row_bytes();
    read_or_replace(indices[i], row);
  }
  return children;
}

void MdsDataset::scan() const {
  samples_->verify();
  for (int64_t index = 0; index < size(); ++index) get(std::span(&index, 1), {});
}

DatasetPtr MdsOptions::make(const Setting& section, const DataEnvironment& environment) const {
  require_classes_once(section, *this);
  if (remote.empty() != fetch.empty())
    section.at(remote.empty() ? "fetch" : "remote")
        .fail("remote and fetch, or [remote] command, belong together");
  if (!fetch.empty()) try {
      require_fetch_command(fetch);
    } catch (const UserError& error) {
      section.at("fetch").fail(error);
    }
  return opened(section, [&] { return open_mds(*this, environment.ignore_index); });
}

}  // namespace tutti
