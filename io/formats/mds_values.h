#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/formats/mds_index.h"

// Samples in an uncompressed shard of MosaicML Streaming (streaming/base/format/mds). Free of libtorch. All
// throw UserError, without the file's name, for damaged bytes.
namespace tutti {

using MdsBytes = std::span<const std::byte>;

// Throws if the shard's head names another number of samples.
void require_mds_shard(MdsBytes shard, int64_t samples);
// The bytes of a column of a sample.
MdsBytes mds_value(MdsBytes shard, const std::vector<MdsColumn>& columns, int64_t sample, std::size_t column);

enum class MdsNumber {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kFloat16,
  kUint32,
  kInt32,
  kFloat32,
  kUint64,
  kInt64,
  kFloat64
};
int64_t bytes_of(MdsNumber type);
bool is_float(MdsNumber type);

// How a column's values are stored.
struct MdsEncoding {
  enum class Form {
    kBytes,
    kText,         // UTF-8
    kNumber,       // of `type`
    kArray,        // of `type` and `shape`, or of its own
    kTextInteger,  // "12"
    kTextFloat,    // "1.5"
    kPixels,       // of an image of Pillow's
    kImageFile,    // JPEG or PNG
    kPixelsList,
    kImageFiles,
    kJson
  };
  Form form = Form::kBytes;
  std::optional<MdsNumber> type = {};
  std::vector<int64_t> shape = {};  // empty: of its own
  bool is_marked = false;           // a list that begins with four bytes for the future

  // Of "ndarray:int32:2049". Throws for those unknown, and for pkl, whose values are programs.
  static MdsEncoding parse(const std::string& text);
};

struct MdsArray {
  MdsNumber type = MdsNumber::kUint8;
  std::vector<int64_t> shape;
  MdsBytes bytes;  // little-endian, rows first
};
MdsArray mds_array(const MdsEncoding& encoding, MdsBytes value);

// Pixels as Pillow's Image.tobytes() has them.
struct MdsPixels {
  int64_t width = 0, height = 0;
  std::string mode;  // "RGB", "L", ...
  MdsBytes bytes;
};
MdsPixels mds_pixels(MdsBytes value);

// The values of a list.
std::vector<MdsBytes> mds_list(const MdsEncoding& encoding, MdsBytes value);

int64_t mds_text_integer(MdsBytes value);
double mds_text_float(MdsBytes value);

// A JSON value that is a number, or lists of numbers of one length.
struct MdsJsonNumbers {
  std::vector<double> values;
  std::vector<int64_t> shape;
  bool are_integers = true;
};
MdsJsonNumbers mds_json_numbers(MdsBytes value);

}  // namespace tutti
