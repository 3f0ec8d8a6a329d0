#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/readers/image_files.h"
#include "data/readers/image_folder.h"
#include "data/readers/mds_columns.h"
#include "data/readers/options.h"
#include "data/shards/mds_samples.h"

namespace tutti {

// Opens a dataset of MosaicML Streaming. An "input" that is an image of one file, and a "target" that is a
// class, and no more, are ImageFiles; all other data are an MdsDataset. Throws UserError and OperatingError
// with the file.
DatasetPtr open_mds(const MdsOptions& options, int64_t ignore_index);

// The names of the classes: those given, or the texts of the column "target", sorted. Empty: the classes are
// numbers. Throws as open_mds.
std::vector<std::string> mds_classes(const MdsOptions& options);

// Columns as arrays: see MdsArrayColumn. Texts are classes of the "target". The order is ShardOrder's.
class MdsDataset final : public Dataset {
 public:
  // A column and its name in batches.
  struct Column {
    std::string array;
    std::size_t place = 0;
    MdsArrayColumn numbers;
    bool has_classes = false;  // integers are below the number of classes
  };
  struct Layout {
    std::vector<Column> columns;
    std::optional<std::size_t> text_target = {};  // the place of a column of class names
    ClassTable names{{}};                         // of these
    int64_t classes = 0;
    LabelRange labels = {};                 // as of Dataset
    int64_t ignore_index = kIgnoredTarget;  // a legal target, whatever `classes` is
    OnBadSample on_bad_sample = OnBadSample::kError;
  };

  MdsDataset(std::shared_ptr<const MdsSamples> samples, Layout layout);

  int64_t size() const override { return samples_->size(); }
  SampleSpec spec() const override;
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override;
  int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const override {
    return samples_->order(seed, epoch, position, shuffle);
  }
  void scan() const override;
  uint64_t digest() const override { return samples_->digest(); }
  std::string advice() const override { return samples_->advice(); }
  LabelRange labels() const override { return layout_.labels; }
  std::string replaced() const override { return replaced_.text(); }
  bool is_remote() const { return samples_->is_remote(); }

 private:
  struct Row;
  void read(int64_t index, const Row& row) const;
  void read_or_replace(int64_t index, const Row& row) const;

  std::shared_ptr<const MdsSamples> samples_;
  Layout layout_;
  ReplacedSamples replaced_{"a sample"};
};

}  // namespace tutti
