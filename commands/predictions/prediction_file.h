#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>

#include "io/replaced_file.h"
#include "io/tables/table_writer.h"
#include "runtime/disk.h"

namespace tutti {

enum class PredictionFormat { kHdf5, kCsv, kJsonLines, kParquet };

// By the ending of the name; "-" is CSV. Throws UserError that names the endings.
PredictionFormat prediction_format(const std::string& out);

// A file of predictions, which appears whole with its name, and the folder of its masks. Not for HDF5. "-" is
// standard output, written as the rows come. Throws UserError with the key --out.
class PredictionFile {
 public:
  explicit PredictionFile(const std::string& out);
  ~PredictionFile();
  PredictionFile(const PredictionFile&) = delete;

  void add(const WrittenRows& rows);
  // Writes OUT_masks/NUMBER.png, numbers from 1, with the class numbers as grey levels, uint8 [height,
  // width]. Returns its path from the folder of the file.
  std::string write_mask(const at::Tensor& mask, const std::string& output, int64_t row);
  void finish();

 private:
  std::string mask_folder(const std::string& output);

  const std::string out_;
  PosixDisk disk_;
  std::optional<FreshFile> fresh_;  // none: standard output
  std::unique_ptr<WritableFile> file_;
  std::unique_ptr<TableWriter> writer_;
  std::vector<std::string> mask_folders_;  // with their names in the end
};

}  // namespace tutti
