#include "data/readers/tar_shards.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "data/readers/image_folder.h"
#include "data/readers/opened.h"
#include "data/streams/command_bytes.h"
#include "io/formats/tar.h"
#include "io/image_folders.h"
#include "io/json/json_line.h"
#include "io/mapped_file.h"
#include "recipe/command_keys.h"
#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint64_t kMostLabelBytes = 1 << 20;
constexpr std::size_t kMostShards = 100'000;

[[noreturn]] void fail_at(uint64_t byte, const std::string& what) {
  throw UserError("byte " + std::to_string(byte) + ": " + what);
}

// The file name's part up to its first dot, with the folders before; and the rest, in lower case.
struct SplitName {
  std::string key, extension;
};

SplitName split(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t dot = name.find('.', slash == std::string::npos ? 0 : slash + 1);
  if (dot == std::string::npos) return {name, ""};
  std::string extension = name.substr(dot + 1);
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return {name.substr(0, dot), extension};
}

bool is_image(const std::string& extension) {
  return extension.find('.') == std::string::npos && is_image_name("x." + extension);
}

class TarSource final : public ImageSource {
 public:
  struct Sample {
    uint64_t first;
    uint64_t bytes;
    uint32_t shard;
    int32_t target;
  };

  int64_t size() const override { return std::ssize(samples_); }
  int64_t target(int64_t index) const override { return at(index).target; }
  int64_t classes() const override { return classes_; }
  std::string name(int64_t index) const override { return shards_[at(index).shard]->path(); }
  std::string place(int64_t index) const override { return "byte " + std::to_string(at(index).first); }
  Bytes read(int64_t index, std::vector<std::byte>&) const override {
    return shards_[at(index).shard]->bytes().subspan(at(index).first, at(index).bytes);
  }
  uint64_t digest() const override {
    uint64_t digest = XXH3_64bits_withSeed(samples_.data(), samples_.size() * sizeof(Sample), shards_.size());
    for (const auto& shard : shards_) {
      const auto bytes = static_cast<uint64_t>(shard->bytes().size());
      digest = XXH3_64bits_withSeed(&bytes, sizeof bytes, digest);
    }
    return digest;
  }

  void add_shard(std::shared_ptr<const MappedFile> shard) { shards_.push_back(std::move(shard)); }
  void add(const TarMember& image, int64_t target) {
    samples_.push_back(
        {image.first, image.bytes, static_cast<uint32_t>(shards_.size() - 1), static_cast<int32_t>(target)});
    classes_ = std::max(classes_, target + 1);
  }
  void set_classes(int64_t count) { classes_ = std::max(classes_, count); }

 private:
  const Sample& at(int64_t index) const { return samples_[static_cast<std::size_t>(index)]; }

  std::vector<std::shared_ptr<const MappedFile>> shards_;
  std::vector<Sample> samples_;
  int64_t classes_ = 0;
};

// Joins neighbouring members with one base name to samples.
class Joined {
 public:
  using Use = std::function<void(const TarMember& image, int64_t target)>;

  Joined(const ClassTable& classes, const std::string& label_key, Use use)
      : classes_(classes), label_key_(label_key), use_(std::move(use)) {}

  void add(const TarMember& member, Bytes bytes) {
    const auto [key, extension] = split(member.name);
    if (key != key_) finish();
    key_ = key;
    if (is_image(extension) && image_)
      fail_at(member.first, member.name + " is a second image beside " + image_->name);
    if (is_image(extension)) image_ = member;
    if (extension == "cls" || (extension == "json" && !label_))
      label_ = text(member, bytes, extension == "json");
  }

  void finish() {
    const auto image = std::exchange(image_, {});
    const auto label = std::exchange(label_, {});
    if (image && !label)
      fail_at(image->first, image->name + " has no class beside it: expected " + key_ + ".cls, or " + key_ +
                                ".json with a text or an integer '" + label_key_ + "'");
    if (label && !image) fail_at(at_, key_ + " has a class and no image; it " + no_image_text());
    if (image) use_(*image, class_of(*image, *label));
  }

 private:
  std::optional<std::string> text(const TarMember& member, Bytes bytes, bool is_json) {
    at_ = member.first;
    const std::string whole(reinterpret_cast<const char*>(bytes.data()),
                            std::min(bytes.size(), kMostLabelBytes));
    if (is_json) return json_text_or_integer(whole, label_key_);
    const std::size_t first = whole.find_first_not_of(" \t\r\n");
    return first == std::string::npos ? ""
                                      : whole.substr(first, whole.find_last_not_of(" \t\r\n") + 1 - first);
  }
  int64_t class_of(const TarMember& image, const std::string& label) const {
    try {
      return classes_.number(label);
    } catch (const UserError& error) {
      fail_at(at_, "the class of " + image.name + ": " + error.message() +
                       (classes_.names().empty() ? "; of names give classes or classes_from" : ""));
    }
  }

  const ClassTable& classes_;
  const std::string& label_key_;
  Use use_;
  std::string key_;
  uint64_t at_ = 0;  // of the class
  std::optional<TarMember> image_;
  std::optional<std::string> label_;
};

// The texts that {000..012} and {a,b} stand for.
std::vector<std::string> in_braces(const std::string& inside) {
  const std::size_t dots = inside.find("..");
  if (dots != std::string::npos) {
    const std::string low = inside.substr(0, dots), high = inside.substr(dots + 2);
    const auto is_number = [](const std::string& text) {
      return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
    };
    if (is_number(low) && is_number(high)) {
      std::vector<std::string> numbers;
      for (int64_t i = std::stoll(low); i <= std::stoll(high) && numbers.size() <= kMostShards; ++i) {
        std::string text = std::to_string(i);
        numbers.push_back(std::string(low.size() > text.size() ? low.size() - text.size() : 0, '0') + text);
      }
      return numbers;
    }
  }
  std::vector<std::string> parts{""};
  for (const char c : inside) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::vector<std::string> without_braces(const std::string& pattern) {
  const std::size_t open = pattern.find('{'), close = pattern.find('}', open);
  if (close == std::string::npos) return {pattern};
  std::vector<std::string> all;
  for (const std::string& part : in_braces(pattern.substr(open + 1, close - open - 1)))
    for (const std::string& rest : without_braces(pattern.substr(close + 1))) {
      if (all.size() >= kMostShards) throw UserError({pattern}, "names too many files");
      all.push_back(pattern.substr(0, open) + part + rest);
    }
  return all;
}

void finish(Joined& joined, bool has_end) try { joined.finish(); } catch (const UserError& error) {
  throw UserError(error.message() + (has_end ? "" : "; the tar file lacks the mark of its end: cut off?"));
}

}  // namespace

std::vector<std::string> shard_paths(const std::string& path) {
  struct stat facts {};
  std::string pattern = path;
  if (stat(path.c_str(), &facts) == 0) {
    if (!S_ISDIR(facts.st_mode)) return {path};
    pattern += "/*.tar";
  }
  std::vector<std::string> paths;
  for (const std::string& path : without_braces(pattern)) {
    const bool is_pattern = path.find_first_of("*?[") != std::string::npos;
    for (const std::string& file : is_pattern ? globbed(path) : std::vector{path}) paths.push_back(file);
  }
  if (paths.empty()) throw UserError({path}, "there is no such tar file");
  return paths;
}

ImageSourcePtr open_tar_shards(const WebDatasetOptions& options) {
  const ClassTable classes(given_classes(options));
  const auto source = std::make_shared<TarSource>();
  for (const std::string& path : shard_paths(options.path)) {
    const auto shard = std::make_shared<const MappedFile>(path);
    source->add_shard(shard);
    try {
      Joined joined(classes, options.label_key,
                    [&](const TarMember& image, int64_t target) { source->add(image, target); });
      const bool has_end = read_tar(shard->bytes(), [&](const TarMember& member) {
        joined.add(member, shard->bytes().subspan(member.first, member.bytes));
      });
      finish(joined, has_end);
    } catch (const UserError& error) {
      throw UserError({path}, error.message());
    }
  }
  if (source->size() == 0) throw UserError({options.path}, "has no image with a class beside it");
  source->set_classes(least_classes(*source, classes, options));
  return source;
}

namespace {

struct StreamedImage final : StreamSample {
  std::vector<std::byte> file;
  int64_t target = 0;
  std::string name;

  void add_to(StreamedHash& hash) const override {
    hash.add(file);
    hash.add(std::as_bytes(std::span(&target, 1)));
  }
};
using StreamedImagePtr = std::shared_ptr<StreamedImage>;

// Shared by all passes of a command's output.
struct ImagesOfCommand {
  std::string command, name, label_key;  // name: of the command, in errors
  ClassTable classes;
  int64_t count = 0;  // of classes
  bool skip_bad = false;
  LeftOutRecords left_out{"sample"};
};

class TarPass final : public SamplePass {
 public:
  explicit TarPass(ImagesOfCommand& images)
      : images_(images),
        bytes_(images.command),
        reader_([this](uint64_t bytes) { return bytes_.take(bytes); }, /*joined=*/true),
        joined_(images.classes, images.label_key,
                [this](const TarMember& image, int64_t target) { use(image, target); }) {}

  StreamSamplePtr next() override {
    while (!ready_ && !ended_) advance();
    return std::exchange(ready_, nullptr);
  }

 private:
  // Reads a file of the tar file. Behind damage, no header would be found.
  void advance() {
    std::optional<TarMember> member;
    try {
      member = reader_.next();
    } catch (const UserError& error) {
      if (!error.position().file.empty()) throw;
      throw UserError({images_.name}, error.message());
    }
    ended_ = !member;
    if (member && ++fruitless_ > kMostFruitless)
      throw UserError({images_.name},
                      "more than " + std::to_string(kMostFruitless) + " files in a row make no sample");
    if (member && is_image(split(member->name).extension))
      files_[member->first].assign(reader_.data().begin(), reader_.data().end());
    try {
      if (member)
        joined_.add(*member, reader_.data());
      else
        joined_.finish();
    } catch (const UserError& error) {
      leave_out(error.message());
      if (member) joined_.add(*member, reader_.data());  // which begins another sample
    }
  }

  void use(const TarMember& image, int64_t target) {
    if (target >= images_.count)
      fail_at(image.first, "class " + std::to_string(target) + " of " + image.name + " is not in [0, " +
                               std::to_string(images_.count) + ")");
    ++number_;
    bad_ = fruitless_ = 0;
    ready_ = std::make_shared<StreamedImage>();
    ready_->file = std::move(files_[image.first]);
    ready_->target = target;
    ready_->name = image.name;
    files_.erase(files_.begin(), files_.upper_bound(image.first));
  }

  void leave_out(const std::string& why) {
    const std::string what = "sample " + std::to_string(number_) + ": " + why;
    if (!images_.skip_bad) throw UserError({images_.name}, what);
    if (++bad_ > LeftOutRecords::kMost)
      throw UserError({images_.name}, "so many samples in a row cannot be read: " + what);
    images_.left_out.note(number_++, images_.name + ": " + what);
  }

  ImagesOfCommand& images_;
  CommandBytes bytes_;
  TarReader reader_;
  std::map<uint64_t, std::vector<std::byte>> files_;  // images, by their first byte
  Joined joined_;
  int64_t number_ = 0;               // of samples, with those left out
  int64_t bad_ = 0, fruitless_ = 0;  // samples and files in a row
  StreamedImagePtr ready_;
  bool ended_ = false;
};

class StreamedImages final : public ImageSource {
 public:
  StreamedImages(std::shared_ptr<ImagesOfCommand> images, const SampleStream::Options& stream)
      : images_(std::move(images)),
        stream_(stream, [of = images_] { return std::make_unique<TarPass>(*of); }) {}

  int64_t size() const override { return stream_.size(); }
  int64_t target(int64_t index) const override { return at(index)->target; }
  int64_t classes() const override { return images_->count; }
  std::string name(int64_t) const override { return images_->name; }
  std::string place(int64_t index) const override { return at(index)->name; }
  Bytes read(int64_t index, std::vector<std::byte>& buffer) const override {
    return buffer = at(index)->file;
  }
  at::Tensor image(int64_t index, const ChoosePart& choose, const Decoding& decoding) const override {
    return decode_part(at(index)->file, choose, decoding);
  }
  ImageSize image_size(int64_t index, int64_t most_pixels) const override {
    return encoded_size(at(index)->file, most_pixels);
  }
  uint64_t digest() const override { return stream_.digest(); }
  std::optional<int64_t> order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const override {
    return stream_.order(seed, epoch, position, shuffle);
  }
  std::string advice() const override { return stream_.advice(); }
  std::string replaced() const override { return images_->left_out.text(); }
  bool is_stream() const override { return true; }

 private:
  std::shared_ptr<const StreamedImage> at(int64_t index) const {
    return std::static_pointer_cast<const StreamedImage>(stream_.get(index));
  }

  std::shared_ptr<ImagesOfCommand> images_;
  SampleStream stream_;
};

}  // namespace

ImageSourcePtr open_tar_stream(const WebDatasetOptions& options, const SampleStream::Options& stream) {
  ClassTable classes(given_classes(options));
  const int64_t count = std::max<int64_t>(std::ssize(classes.names()), options.num_classes);
  if (count == 0)
    throw UserError(
        "the classes are not known before all is read: give num_classes, classes or classes_from");
  const auto images = std::make_shared<ImagesOfCommand>(stream.command, command_name(stream.command),
                                                        options.label_key, std::move(classes), count,
                                                        options.on_bad_sample == OnBadSample::kSkip);
  return std::make_shared<const StreamedImages>(images, stream);
}

DatasetPtr WebDatasetOptions::make(const Setting& section, const DataEnvironment&) const {
  require_one_source(section);
  if (command.empty()) return open_image_files(section, *this, open_tar_shards);
  require_classes_once(section, *this);
  return opened(section, [&] {
    const auto stream = stream_of(section, *this);
    return std::make_shared<const ImageFiles>(open_tar_stream(*this, stream), *this);
  });
}

}  // namespace tutti
