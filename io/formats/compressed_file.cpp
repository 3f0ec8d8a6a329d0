#include "io/formats/compressed_file.h"

#include <zstd.h>

#include <memory>
#include <new>
#include <span>
#include <vector>

#include "io/formats/gzip_file.h"
#include "io/mapped_file.h"
#include "runtime/disk.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void fail_length(uint64_t bytes) {
  throw UserError("uncompressed it has not the " + std::to_string(bytes) + " bytes that index.json says");
}

void write_zstd(Bytes in, uint64_t bytes, WritableFile& out) {
  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(),
                                                                          ZSTD_freeDStream);
  if (!stream) throw std::bad_alloc();
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  ZSTD_inBuffer from{in.data(), in.size(), 0};
  uint64_t written = 0;
  std::size_t missing = 1;
  while (true) {
    ZSTD_outBuffer to{buffer.data(), buffer.size(), 0};
    missing = ZSTD_decompressStream(stream.get(), &to, &from);
    if (ZSTD_isError(missing))
      throw UserError("byte " + std::to_string(from.pos) +
                      ": damaged zstd data: " + ZSTD_getErrorName(missing));
    written += to.pos;
    if (written > bytes) fail_length(bytes);
    out.append(Bytes(buffer).first(to.pos));
    if (from.pos == from.size && to.pos < to.size) break;
  }
  if (missing != 0) throw UserError("ends before its zstd data do: truncated");
  if (written != bytes) fail_length(bytes);
}

void write_gzip(const std::string& path, uint64_t bytes, WritableFile& out) {
  const GzipFile file(path, [&](Bytes) { return bytes; });
  if (file.is_cut() || file.bytes().size() != bytes) fail_length(bytes);
  out.append(file.bytes());
}

}  // namespace

void uncompress_file(const std::string& from, const std::string& compression, uint64_t bytes,
                     const std::string& to) {
  const auto out = PosixDisk().open(to, true);
  if (compression.starts_with("zstd"))
    write_zstd(MappedFile(from).bytes(), bytes, *out);
  else
    write_gzip(from, bytes, *out);
  out->close();
}

}  // namespace tutti
