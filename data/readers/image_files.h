#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/images/decoder.h"
#include "data/readers/opened.h"
#include "data/readers/options.h"

namespace tutti {

// Where encoded images and their classes are. Thread-safe.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual int64_t size() const = 0;
  virtual int64_t target(int64_t index) const = 0;
  virtual int64_t classes() const = 0;                     // targets are below
  virtual std::string name(int64_t index) const = 0;       // its file, for errors
  virtual std::string place(int64_t) const { return ""; }  // within the file
  // The image's file. `buffer`: may hold the bytes. Throws UserError without the file's name.
  virtual std::span<const std::byte> read(int64_t index, std::vector<std::byte>& buffer) const = 0;
  virtual uint64_t digest() const = 0;
};
using ImageSourcePtr = std::shared_ptr<const ImageSource>;

// Images in files of their own sizes: "input" uint8 [-1, -1, 3] RGB, "target" int64. An image that cannot be
// read is an error with its file and index; or it is replaced by the next one that can, so that batches keep
// their number of samples.
class ImageFiles final : public Dataset {
 public:
  ImageFiles(ImageSourcePtr source, const ImageFileOptions& options, std::optional<ImageSize> size = {});

  int64_t size() const override { return source_->size(); }
  SampleSpec spec() const override;
  // Throws UserError with two files if the images differ in size.
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  // One sample, [1, height, width, 3] of the part that is chosen (data/images/decoder.h).
  Batch get_part(int64_t index, const ChoosePart& choose) const;
  void scan() const override;
  uint64_t digest() const override { return source_->digest(); }
  std::string replaced() const override;

  std::string describe(int64_t index) const;  // "train/cat/1.jpg: sample 17"
  // The same images as a dataset of the first one's size. Throws UserError that names two images of which the
  // sizes differ, if some of those it looks at do.
  std::shared_ptr<const ImageFiles> of_one_size() const;

 private:
  // True if sample `index` could be read and has been replaced by none.
  bool try_part(int64_t index, const ChoosePart& choose, Batch& sample) const;
  void note_replaced(const std::string& why) const;

  ImageSourcePtr source_;
  ImageFileOptions options_;
  std::optional<ImageSize> size_;
  mutable std::mutex mutex_;
  mutable int64_t replaced_ = 0;
  mutable std::string first_replaced_;
};

// The dataset of what `open_source` opens, for a kind's section; errors have the recipe's line.
template <class Options>
DatasetPtr open_image_files(const Setting& section, const Options& options,
                            ImageSourcePtr (*open_source)(const Options&)) {
  if (!options.classes.empty() && !options.classes_from.empty())
    section.at("classes_from").fail("the names are given by classes, too");
  return opened(section, [&] { return std::make_shared<const ImageFiles>(open_source(options), options); });
}

}  // namespace tutti
