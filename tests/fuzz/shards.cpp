#include <array>
#include <span>

#include "data/readers/mds_columns.h"
#include "data/readers/mds_dataset.h"
#include "io/formats/compressed_file.h"
#include "io/formats/mds_index.h"
#include "io/formats/mds_values.h"
#include "tests/fuzz/file_in_memory.h"
#include "tests/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

const std::string kGolden = "tests/golden/mds/all/";

MdsBytes as_value(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

// As an array of samples, and by itself.
void read_value(const MdsEncoding& encoding, MdsBytes value) {
  read_or_refuse([&] {
    const MdsArrayColumn column(encoding, value, {});
    if (column.row_bytes() > (std::size_t{1} << 24)) return;
    std::vector<std::byte> row(column.row_bytes());
    column.write(value, row.data());
  });
  read_or_refuse([&] { mds_text_integer(value); });
  read_or_refuse([&] { mds_text_float(value); });
}

}  // namespace

void mds_index(const std::string& bytes) {
  static const bool is_there = [] {
    for (const char* name : {"shard.00000.mds", "shard.00001.mds"})
      write_file(std::string("mds/") + name, source_file(kGolden + name));
    return true;
  }();
  const std::string path = write_file("mds/index.json", bytes);
  read_or_refuse([&] {
    const MdsIndex index = read_mds_index(path);
    for (const MdsShard& shard : index.shards)
      if (shard.compressed) return;  // would be written
    MdsOptions options;
    options.path = folder() + "/mds";
    options.columns = Setting(Setting::Table{{"input", Setting(std::string("array_float16"), "columns", {})},
                                             {"target", Setting(std::string("label"), "columns", {})}},
                              "columns", {});
    const DatasetPtr data = open_mds(options, 0);
    read_or_refuse([&] { data->scan(); });
    const std::vector<int64_t> some = {0, data->size() - 1};
    data->get(some, {});
  });
  if (!is_there) std::abort();
}

// A shard of two samples with every encoding.
void mds_shard(const std::string& bytes) {
  static const MdsIndex index =
      read_mds_index(write_file("golden/index.json", source_file(kGolden + "index.json")));
  const MdsBytes shard = as_value(bytes);
  read_or_refuse([&] {
    require_mds_shard(shard, 2);
    for (std::size_t c = 0; c < index.columns.size(); ++c)
      for (const int64_t sample : {0, 1})
        read_or_refuse([&] {
          const MdsBytes value = mds_value(shard, index.columns, sample, c);
          read_value(MdsEncoding::parse(index.columns[c].encoding), value);
        });
  });
}

// The first byte chooses the encoding of the others.
void mds_values(const std::string& bytes) {
  static constexpr std::array kEncodings = {
      "bytes",     "str",  "int",     "float32",       "str_int",          "str_float",  "str_decimal",
      "pil",       "jpeg", "png",     "jpeg_array",    "jpegarray",        "list[jpeg]", "list[pil]",
      "list[png]", "json", "ndarray", "ndarray:int32", "ndarray:uint8:2,3"};
  if (bytes.empty()) return;
  const char* const encoding = kEncodings[static_cast<uint8_t>(bytes[0]) % kEncodings.size()];
  const std::string value = bytes.substr(1);
  read_value(MdsEncoding::parse(encoding), as_value(value));
  read_or_refuse([&] { MdsEncoding::parse(value); });
}

void compressed(const std::string& bytes) {
  const std::string from = write_file("compressed", bytes);
  for (const char* how : {"zstd", "gz"})
    read_or_refuse([&] { uncompress_file(from, how, 562, folder() + "/uncompressed"); });
}

}  // namespace tutti::fuzz
