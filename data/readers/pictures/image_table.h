#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/readers/image_files.h"
#include "data/readers/pictures/masked_pictures.h"
#include "data/tables/fitted_table.h"
#include "data/tables/table_columns.h"

namespace tutti {

// Pictures that a column of tables names, a row a sample, one file behind the other, with "target" by
// FittedTable::Target, if there are targets. Paths and targets are in memory. Of a column of masks `open`
// makes MaskedPictures.
class ImageTable final : public PictureSource {
 public:
  struct Options {
    std::string image = "";  // the column; "": the only one that names pictures
    std::string root = "";   // the folder of the paths; "": that of each table
    std::string mask = "";   // the column of masks; "": none
    MaskedPictures::Options masks = {};
    bool may_lack_masks = false;  // where the column is missing
    bool must_exist = true;       // of the pictures that the first rows name
    TableTargets targets = {};
    bool normalize_target = false;            // of targets that are numbers
    const std::vector<bool>* rows = nullptr;  // true for each row to keep; null: all
  };

  static constexpr int64_t kLookedFor = 100'000;  // pictures

  // The training's table. Throws UserError with place and column, WrongKey.
  static ImageSourcePtr open(const TableFiles& files, const Options& options);
  // A table to evaluate or to predict, where the targets may be missing.
  static ImageSourcePtr open(const TableFiles& files, const Options& options, const FittedTable& fitted);

  std::optional<ImageTarget> target_form() const override;
  at::Tensor target_tensor(int64_t index) const override { return targets_[index]; }
  at::Tensor targets() const override { return targets_; }
  int64_t classes() const override { return fitted_.num_classes; }
  std::string fitted() const override { return fitted_.target.empty() ? "" : fitted_.to_json(); }
  uint64_t digest() const override;

 private:
  struct Reading;
  ImageTable(PictureFiles pictures, FittedTable fitted, at::Tensor targets);

  FittedTable fitted_;
  at::Tensor targets_;  // int64 or float32 [samples], or float32 [samples, columns]; undefined: none
};

}  // namespace tutti
