#pragma once

#include <memory>
#include <vector>

#include "data/dataset.h"
#include "data/transforms/ignore_index.h"
#include "io/formats/gzip_file.h"

namespace tutti {

// Bytes at equal distances in a file.
struct ByteRecords {
  std::shared_ptr<const GzipFile> file;
  int64_t first = 0;   // byte of record 0
  int64_t stride = 0;  // bytes from a record to the next

  const std::byte* at(int64_t record) const { return file->bytes().data() + first + record * stride; }
};

// Labelled images of bytes: "input" uint8 [height, width, channels], "target" int64. Image transforms apply.
// Models need to_tensor.
class ImageDataset final : public Dataset {
 public:
  // Samples of one file, or of one of images and one of labels.
  struct Part {
    ByteRecords images;
    ByteRecords labels;  // a byte each
    int64_t samples = 0;
  };
  struct Layout {
    int64_t height = 0, width = 0, channels = 1;
    bool planar = false;                    // in the file [channels, height, width]
    int64_t classes = 0;                    // labels are below
    int64_t ignore_index = kIgnoredTarget;  // or this
    int64_t bytes() const { return height * width * channels; }
  };

  // Throws UserError with file and byte if a label is not below layout.classes.
  ImageDataset(const Layout& layout, std::vector<Part> parts);

  int64_t size() const override { return starts_.back(); }
  SampleSpec spec() const override;
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  uint64_t digest() const override;
  LabelRange labels() const override;

 private:
  Layout layout_;
  std::vector<Part> parts_;
  std::vector<int64_t> starts_;  // the first sample of each part, and the number of samples
};

}  // namespace tutti
