#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/dataset.h"
#include "data/images/decoder.h"
#include "data/images/picture_files.h"
#include "data/readers/opened.h"
#include "data/readers/options.h"

namespace tutti {

// A sample's "target": a class, int64 []; values, float32 [] or [k]; or a mask, int64 [-1, -1] of the image's
// size.
struct ImageTarget {
  Shape shape = {};
  at::ScalarType dtype = at::kLong;

  bool is_mask() const { return shape.size() == 2; }
};

// Where encoded images and their targets are. Thread-safe.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual int64_t size() const = 0;
  // nullopt: samples have no "target".
  virtual std::optional<ImageTarget> target_form() const { return ImageTarget(); }
  // The class, of a source of classes.
  virtual int64_t target(int64_t index) const;
  // "target" of a sample. Throws UserError, for masks without the image's name.
  virtual at::Tensor target_tensor(int64_t index) const;
  // "target" of all samples; undefined if samples are fetched one by one, or have masks or no targets.
  virtual at::Tensor targets() const;
  // False if samples are fetched one by one, to see their targets.
  virtual bool knows_targets() const { return true; }
  virtual int64_t classes() const = 0;                     // targets are below
  virtual LabelRange labels() const { return {}; }         // of targets that are numbers in the data
  virtual std::string name(int64_t index) const = 0;       // its file, for errors
  virtual std::string place(int64_t) const { return ""; }  // within the file
  virtual std::string short_name(int64_t index) const;     // for a person: within the folder of the data
  // The image's file. `buffer`: may hold the bytes. Throws UserError without the file's name.
  virtual std::span<const std::byte> read(int64_t index, std::vector<std::byte>& buffer) const = 0;
  virtual uint64_t digest() const = 0;
  // The image, as by decode_part and encoded_size of the file. Throw UserError without the file's name.
  virtual at::Tensor image(int64_t index, const ChoosePart& choose, const Decoding& decoding) const;
  virtual ImageSize image_size(int64_t index, int64_t most_pixels) const;
  // As of a Dataset: the order of an epoch, a check of all files, advice.
  virtual std::optional<int64_t> order(uint64_t, int64_t, int64_t, bool) const { return std::nullopt; }
  virtual void scan() const {}
  virtual std::string advice() const { return {}; }
  virtual std::string replaced() const { return {}; }
  virtual std::string fitted() const { return {}; }
  // True if samples follow beyond size(), and are best read in their order (data/streams/sample_stream.h).
  virtual bool is_stream() const { return false; }
};
using ImageSourcePtr = std::shared_ptr<const ImageSource>;

// Images in files of their own, without targets.
class PictureSource : public ImageSource {
 public:
  explicit PictureSource(PictureFiles files) : files_(std::move(files)) {}

  int64_t size() const override { return files_.size(); }
  std::optional<ImageTarget> target_form() const override { return std::nullopt; }
  int64_t classes() const override { return 0; }
  std::string name(int64_t index) const override { return files_.file(index); }
  std::string short_name(int64_t index) const override { return files_.path(index); }
  std::span<const std::byte> read(int64_t index, std::vector<std::byte>& buffer) const override {
    return files_.read(index, buffer);
  }
  uint64_t digest() const override { return files_.digest(); }
  std::string advice() const override { return advice_; }
  void set_advice(const std::string& advice) { advice_ = advice; }

 protected:
  PictureFiles files_;

 private:
  std::string advice_;
};

// Counts samples that could not be read and were replaced. Thread-safe.
class ReplacedSamples {
 public:
  explicit ReplacedSamples(std::string what) : what_(std::move(what)) {}

  static constexpr int64_t kMost = 100;  // in a row

  void note(const std::string& why, int64_t sample = -1) const;
  std::string text() const;               // of Dataset::replaced
  std::string why(int64_t sample) const;  // "": could be read, or has not been

 private:
  std::string what_;
  mutable std::mutex mutex_;
  mutable int64_t count_ = 0;
  mutable std::string first_;
  mutable std::unordered_map<int64_t, std::string> why_;
};

// Images in files of their own sizes: "input" uint8 [-1, -1, 3] RGB, "target" as the source says. An image
// that cannot be read is an error with its file and index; or is replaced by the next readable image, so that
// batches keep their number of samples.
class ImageFiles final : public Dataset {
 public:
  ImageFiles(ImageSourcePtr source, const ImageReadOptions& options, std::optional<ImageSize> size = {});

  int64_t size() const override { return source_->size(); }
  SampleSpec spec() const override;
  // Throws UserError with two files if the images differ in size.
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  // One sample, [1, height, width, 3] of the part that is chosen (data/images/decoder.h).
  Batch get_part(int64_t index, const ChoosePart& choose) const;
  void scan() const override;
  uint64_t digest() const override { return source_->digest(); }
  std::string advice() const override { return source_->advice(); }
  std::string replaced() const override;
  LabelRange labels() const override { return source_->labels(); }
  int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const override;

  std::string fitted() const override { return source_->fitted(); }

  at::Tensor targets() const { return source_->targets(); }
  std::string short_name(int64_t index) const { return source_->short_name(index); }
  std::string describe(int64_t index) const;  // "train/cat/1.jpg: sample 17"
  // Of a sample that has been read, and that another replaced; else "".
  std::string why_replaced(int64_t index) const { return replaced_.why(index); }
  // The same images as a dataset of the first image's size. Throws UserError that names two images of
  // differing sizes, if the function, which looks at some images, sees any.
  std::shared_ptr<const ImageFiles> with_one_size() const;

 private:
  Batch no_samples() const;
  Batch read_part(int64_t index, const ChoosePart& choose) const;
  // True if sample `index` could be read and has been replaced by none.
  bool try_part(int64_t index, const ChoosePart& choose, Batch& sample) const;

  ImageSourcePtr source_;
  ImageReadOptions options_;
  std::optional<ImageSize> size_;
  ReplacedSamples replaced_{"an image"};
};

// Throws UserError if the section gives the names of classes twice.
inline void require_classes_once(const Setting& section, const ImageFileOptions& options) {
  if (!options.classes.empty() && !options.classes_from.empty())
    section.at("classes_from").fail("the names are given by classes, too");
}

// The dataset of the images that `open_source` opens, for a kind's section; errors have the recipe's line.
template <class Options>
DatasetPtr open_image_files(const Setting& section, const Options& options,
                            ImageSourcePtr (*open_source)(const Options&)) {
  require_classes_once(section, options);
  return opened(section, [&] { return std::make_shared<const ImageFiles>(open_source(options), options); });
}

}  // namespace tutti
