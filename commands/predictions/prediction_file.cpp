#include "commands/predictions/prediction_file.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <span>

#include "io/formats/png.h"
#include "recipe/setting.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnfinished = ".new";

Setting out_key(const std::string& out) { return {out, "--out", {"command line"}}; }

void write_to_stdout(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size())
    throw OperatingError("standard output: cannot be written");
}

template <class Work>
auto blaming_out(const std::string& out, const Work& work) try {
  return work();
} catch (const OperatingError& error) {
  out_key(out).fail(error);
}

}  // namespace

PredictionFormat prediction_format(const std::string& out) {
  const std::string ending = lower_case(fs::path(out).extension().string());
  if (out == "-" || ending == ".csv") return PredictionFormat::kCsv;
  if (ending == ".jsonl") return PredictionFormat::kJsonLines;
  if (ending == ".parquet") return PredictionFormat::kParquet;
  if (ending == ".h5" || ending == ".hdf5") return PredictionFormat::kHdf5;
  out_key(out).fail(
      "expected the ending .csv, .jsonl, .parquet, .h5 or .hdf5, or - for CSV on standard output");
}

PredictionFile::PredictionFile(const std::string& out) : out_(out) {
  const PredictionFormat format = prediction_format(out);
  blaming_out(out_, [&] {
    if (out == "-") {
      writer_ = csv_writer(write_to_stdout);
      return;
    }
    fresh_.emplace(disk_, out);
    if (format == PredictionFormat::kParquet) {
      disk_.open(fresh_->name(), /*truncate=*/true)->close();  // whose error is a better one
      writer_ = parquet_writer(fresh_->name());
      return;
    }
    file_ = disk_.open(fresh_->name(), /*truncate=*/true);
    const auto write = [this](std::string_view bytes) { file_->append(std::as_bytes(std::span(bytes))); };
    writer_ = format == PredictionFormat::kCsv ? csv_writer(write) : json_lines_writer(write);
  });
}

PredictionFile::~PredictionFile() {
  for (const std::string& folder : mask_folders_) {
    std::error_code ignored;  // the error that led here is the one to report
    fs::remove_all(folder + kUnfinished, ignored);
  }
}

void PredictionFile::add(const WrittenRows& rows) {
  blaming_out(out_, [&] { writer_->add(rows); });
}

std::string PredictionFile::mask_folder(const std::string& output) {
  if (!fresh_) out_key(out_).fail("the masks need a folder beside the file; name a file");
  const std::string folder =
      fs::path(out_).replace_extension().string() + (output.empty() ? "" : '_' + output) + "_masks";
  if (std::ranges::count(mask_folders_, folder) > 0) return folder;
  for (const std::string& path : {folder, folder + kUnfinished})
    if (fs::exists(fs::symlink_status(path)))
      out_key(out_).fail("the folder of its masks, " + path + ", exists already; remove it first");
  disk_.make_folders(folder + kUnfinished);
  mask_folders_.push_back(folder);
  return folder;
}

std::string PredictionFile::write_mask(const at::Tensor& mask, const std::string& output, int64_t row) {
  return blaming_out(out_, [&] {
    const std::string folder = mask_folder(output), name = '/' + std::to_string(row + 1) + ".png";
    const std::span pixels(mask.const_data_ptr<uint8_t>(), static_cast<std::size_t>(mask.numel()));
    replace_file(disk_, folder + kUnfinished + name, png(pixels, mask.size(0), mask.size(1), 1));
    return fs::path(folder).filename().string() + name;
  });
}

void PredictionFile::finish() {
  blaming_out(out_, [&] {
    writer_->finish();
    if (!fresh_) {
      if (std::fflush(stdout) != 0) throw OperatingError("standard output: cannot be written");
      return;
    }
    if (file_) file_->close();
    for (const std::string& folder : mask_folders_) disk_.rename(folder + kUnfinished, folder);
    fresh_->commit();
  });
}

}  // namespace tutti
