#include "io/hdf5/hdf5_chunks.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>

#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr const char* kGzip = "gzip";
constexpr const char* kShuffle = "shuffle";
constexpr const char* kChecksum = "fletcher32";
constexpr std::size_t kChecksumBytes = 4;
constexpr std::size_t kMostFilters = 32;  // in HDF5
constexpr unsigned kMostFilterNumbers = 8;
constexpr std::size_t kMostItemBytes = 8;
constexpr uint64_t kMostChunkBytes = uint64_t{1} << 32;

using Shape = std::vector<int64_t>;

// Adds a filter of chunks.
void add_filter(hid_t list, unsigned index, Hdf5Storage& storage) {
  unsigned flags = 0, numbers[kMostFilterNumbers], config = 0;
  size_t count = kMostFilterNumbers;
  char name[64] = {};
  const H5Z_filter_t filter =
      H5Pget_filter2(list, index, &flags, &count, numbers, sizeof name, name, &config);
  storage.filters.push_back(filter == H5Z_FILTER_DEFLATE      ? kGzip
                            : filter == H5Z_FILTER_SHUFFLE    ? kShuffle
                            : filter == H5Z_FILTER_FLETCHER32 ? kChecksum
                            : name[0] != '\0'                 ? on_one_line(name)
                                                              : "filter " + std::to_string(filter));
  if (H5Zfilter_avail(filter) <= 0) storage.missing_filter = storage.filters.back();
}

bool is_known(const std::string& filter) {
  return filter == kGzip || filter == kShuffle || filter == kChecksum;
}

// Chunks without filters are left to libhdf5, which copies their rows without a buffer.
bool are_undone_here(const std::vector<std::string>& filters) {
  return !filters.empty() && std::ranges::all_of(filters, is_known) &&
         std::ranges::count(filters, kGzip) <= 1;
}

// Chunks at the edge may lie in the file without filters.
bool has_unfiltered_edge(hid_t list) {
  unsigned options = 0;
  return H5Pget_chunk_opts(list, &options) < 0 || options != 0;
}

// False for what only damaged headers say: HDF5's chunks have less than 4 GiB.
bool is_possible(const Shape& chunk, const Shape& shape, std::size_t item) {
  const bool is_positive = std::ranges::all_of(chunk, [](int64_t size) { return size > 0; });
  return !chunk.empty() && chunk.size() == shape.size() && is_positive &&
         bytes_of(chunk, item) < kMostChunkBytes && item <= kMostItemBytes;
}

// Calls visit(offset) for each chunk of rows [first, first + count), in order.
void for_chunks(const ChunkedArray& array, int64_t first, int64_t count,
                const std::function<void(const Shape&)>& visit) {
  const Shape& chunk = array.storage.chunk;
  Shape begin(chunk.size(), 0), end = array.shape;
  begin[0] = first / chunk[0] * chunk[0];
  end[0] = first + count;
  for (Shape at = begin; at[0] < end[0];) {
    visit(at);
    for (size_t dim = chunk.size(); dim-- > 0;) {
      at[dim] += chunk[dim];
      if (at[dim] < end[dim] || dim == 0) break;
      at[dim] = begin[dim];
    }
  }
}

// HDF5's filter shuffle stores the first bytes of all numbers, then the second ones, ...
void unshuffle(const std::byte* from, size_t bytes, size_t item, std::byte* to) {
  const size_t items = bytes / item;
  for (size_t byte = 0; byte < item; ++byte)
    for (size_t i = 0; i < items; ++i) to[i * item + byte] = from[byte * items + i];
  std::memcpy(to + items * item, from + items * item, bytes - items * item);
}

// The part of a chunk that lies in the rows wanted, copied line by line of the last dimension. Lines of whole
// rows are joined.
class ChunkCopy {
 public:
  ChunkCopy(const ChunkedArray& array, const Shape& offset, int64_t first, int64_t count)
      : array_(array), offset_(offset), low_(offset), high_(offset), first_(first) {
    for (size_t dim = 0; dim < offset.size(); ++dim)
      high_[dim] = std::min(offset[dim] + array.storage.chunk[dim], array.shape[dim]);
    low_[0] = std::max(low_[0], first);
    high_[0] = std::min(high_[0], first + count);
  }

  void run(const std::byte* from, std::byte* to) const { copy(0, from, to); }

  // True if the rows wanted of this chunk, as decoded, are a run of bytes of the rows wanted.
  bool is_dense() const { return has_whole_lines(0); }
  size_t begin_in_rows() const { return static_cast<size_t>(low_[0] - first_) * row_bytes(); }
  size_t bytes() const { return static_cast<size_t>(high_[0] - low_[0]) * row_bytes(); }

 private:
  // True if the chunk has all of the dimensions after `dim`.
  bool has_whole_lines(size_t dim) const {
    for (size_t later = dim + 1; later < offset_.size(); ++later)
      if (array_.storage.chunk[later] != array_.shape[later]) return false;
    return true;
  }

  size_t row_bytes() const { return stride(array_.shape, 0); }

  // Bytes from an index of `dim` to the next.
  size_t stride(const Shape& shape, size_t dim) const {
    return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1, shape.end(),
                           array_.storage.item,
                           [](size_t bytes, int64_t size) { return bytes * static_cast<size_t>(size); });
  }

  void copy(size_t dim, const std::byte* from, std::byte* to) const {
    const size_t step_from = stride(array_.storage.chunk, dim), step_to = stride(array_.shape, dim);
    from += static_cast<size_t>(low_[dim] - offset_[dim]) * step_from;
    to += static_cast<size_t>(low_[dim] - (dim == 0 ? first_ : 0)) * step_to;
    const auto lines = static_cast<size_t>(high_[dim] - low_[dim]);
    if (has_whole_lines(dim)) {
      std::memcpy(to, from, lines * step_to);
      return;
    }
    for (size_t i = 0; i < lines; ++i) copy(dim + 1, from + i * step_from, to + i * step_to);
  }

  const ChunkedArray& array_;
  Shape offset_, low_, high_;
  int64_t first_;
};

// HDF5's variant of Fletcher's checksum, over big-endian numbers of 16 bits. Sums are folded as in HDF5: a
// sum of 0xffff is not 0.
uint32_t fletcher32(std::span<const std::byte> bytes) {
  const auto folded = [](uint32_t sum) { return (sum & 0xffff) + (sum >> 16); };
  uint32_t sum = 0, sum_of_sums = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    const auto low = i + 1 < bytes.size() ? std::to_integer<uint32_t>(bytes[i + 1]) : 0;
    sum = folded(sum + (std::to_integer<uint32_t>(bytes[i]) << 8 | low));
    sum_of_sums = folded(sum_of_sums + sum);
  }
  return sum_of_sums << 16 | sum;
}

bool inflate_to(std::span<const std::byte> from, std::span<std::byte> to) {
  uLongf size = to.size();
  const int code = uncompress(reinterpret_cast<Bytef*>(to.data()), &size,
                              reinterpret_cast<const Bytef*>(from.data()), from.size());
  return code == Z_OK && size == to.size();
}

// Undoes the filters, the last one first. No filter writes more than a chunk and its checksums have.
class Decoder {
 public:
  Decoder(const Hdf5Storage& storage, const EncodedChunk& chunk)
      : storage_(storage), skipped_(chunk.skipped), from_(chunk.bytes) {}

  // False if the bytes are damaged.
  bool decode(std::span<std::byte> to) {
    for (std::size_t i = storage_.filters.size(); i-- > 0;)
      if (is_applied(i) && !undo(i, to)) return false;
    if (from_.size() != to.size()) return false;
    if (from_.data() != to.data()) std::memcpy(to.data(), from_.data(), to.size());
    return true;
  }

 private:
  bool is_applied(std::size_t i) const { return (skipped_ >> i & 1) == 0; }

  // Filters before this one that were applied.
  std::size_t before(std::size_t i, bool checksums) const {
    std::size_t count = 0;
    for (std::size_t k = 0; k < i; ++k)
      count += is_applied(k) && (storage_.filters[k] == kChecksum) == checksums;
    return count;
  }

  bool undo(std::size_t i, std::span<std::byte> to) {
    if (storage_.filters[i] == kChecksum) return remove_checksum();
    const std::size_t size = to.size() + kChecksumBytes * before(i, true);
    std::unique_ptr<std::byte[]> memory;
    const bool is_last = before(i, false) == 0 && size == to.size();
    if (!is_last) memory = std::make_unique_for_overwrite<std::byte[]>(size);
    const std::span<std::byte> out = is_last ? to : std::span(memory.get(), size);
    if (storage_.filters[i] == kGzip) {
      if (!inflate_to(from_, out)) return false;
    } else {
      if (from_.size() != size) return false;
      unshuffle(from_.data(), size, storage_.item, out.data());
    }
    from_ = out;
    memory_ = std::move(memory);
    return true;
  }

  bool remove_checksum() {
    if (from_.size() < kChecksumBytes) return false;
    const auto checksum = from_.last(kChecksumBytes);
    from_ = from_.first(from_.size() - kChecksumBytes);
    uint32_t stored = 0;
    for (std::size_t i = 0; i < kChecksumBytes; ++i)
      stored |= std::to_integer<uint32_t>(checksum[i]) << (8 * i);
    return stored == fletcher32(from_);
  }

  const Hdf5Storage& storage_;
  uint32_t skipped_;
  std::span<const std::byte> from_;
  std::unique_ptr<std::byte[]> memory_;  // of `from_`
};

bool decode(const ChunkedArray& array, const EncodedChunk& chunk, std::span<std::byte> to) {
  return !chunk.is_damaged && Decoder(array.storage, chunk).decode(to);
}

// True if the chunk lies in the file.
bool is_written(hid_t dataset, const std::vector<hsize_t>& offset) {
  unsigned skipped = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t bytes = 0;
  return H5Dget_chunk_info_by_coord(dataset, offset.data(), &skipped, &address, &bytes) >= 0 &&
         address != HADDR_UNDEF;
}

// Lets libhdf5 read a chunk that was never written: as fill values. False if it finds the index damaged.
bool read_unwritten(hid_t dataset, const ChunkedArray& array, const std::vector<hsize_t>& offset,
                    EncodedChunk& chunk) {
  std::vector<hsize_t> zeros(offset.size(), 0), extent(offset.size());
  for (size_t dim = 0; dim < extent.size(); ++dim)
    extent[dim] =
        static_cast<hsize_t>(std::min(array.storage.chunk[dim], array.shape[dim] - chunk.offset[dim]));
  const Hdf5Handle memory = hdf5_space(array.storage.chunk), space(H5Dget_space(dataset), H5Sclose),
                   type(H5Dget_type(dataset), H5Tclose);
  chunk.bytes.resize(bytes_of(array.storage.chunk, array.storage.item));
  chunk.skipped = UINT32_MAX;
  H5Sselect_hyperslab(memory, H5S_SELECT_SET, zeros.data(), nullptr, extent.data(), nullptr);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, offset.data(), nullptr, extent.data(), nullptr);
  return H5Dread(dataset, type, memory, space, H5P_DEFAULT, chunk.bytes.data()) >= 0;
}

// False if the chunk is damaged: libhdf5 fails, or the bytes are more than filters can have made.
bool read_chunk(hid_t dataset, const ChunkedArray& array, EncodedChunk& chunk) {
  const std::vector<hsize_t> offset(chunk.offset.begin(), chunk.offset.end());
  hsize_t bytes = 0;
  const bool has_size = H5Dget_chunk_storage_size(dataset, offset.data(), &bytes) >= 0;
  if (!has_size || bytes == 0)  // no chunk; but one may claim to have no bytes
    return !(has_size && is_written(dataset, offset)) && read_unwritten(dataset, array, offset, chunk);
  if (bytes > most_stored(bytes_of(array.storage.chunk, array.storage.item))) return false;
  chunk.bytes.resize(bytes);
  return H5Dread_chunk(dataset, H5P_DEFAULT, offset.data(), &chunk.skipped, chunk.bytes.data()) >= 0;
}

}  // namespace

uint64_t bytes_of(const Shape& shape, std::size_t item) {
  uint64_t bytes = item;
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) return UINT64_MAX;
  return bytes;
}

// zlib's bound, and some checksums.
uint64_t most_stored(uint64_t chunk_bytes) { return chunk_bytes + chunk_bytes / 512 + 256; }

Hdf5Storage storage_of(hid_t dataset, const Shape& shape, std::size_t item) {
  const Hdf5Handle list(H5Dget_create_plist(dataset), H5Pclose);
  Hdf5Storage storage{.item = item};
  if (H5Pget_layout(list) != H5D_CHUNKED) return storage;
  const int dims = H5Pget_chunk(list, 0, nullptr);
  std::vector<hsize_t> chunk(static_cast<size_t>(std::max(dims, 0)));
  H5Pget_chunk(list, dims, chunk.data());
  storage.chunk.assign(chunk.begin(), chunk.end());
  const int filters = H5Pget_nfilters(list);
  for (int i = 0; i < filters; ++i) add_filter(list, static_cast<unsigned>(i), storage);
  storage.decodable = is_possible(storage.chunk, shape, item) && are_undone_here(storage.filters) &&
                      !has_unfiltered_edge(list);
  return storage;
}

std::vector<EncodedChunk> read_encoded(hid_t dataset, const ChunkedArray& array, int64_t first,
                                       int64_t count) {
  std::vector<EncodedChunk> chunks;
  for_chunks(array, first, count, [&](const Shape& at) {
    EncodedChunk& chunk = chunks.emplace_back(EncodedChunk{at, {}});
    chunk.is_damaged = !read_chunk(dataset, array, chunk);
  });
  return chunks;
}

bool decode_chunk(const ChunkedArray& array, const EncodedChunk& chunk, int64_t first, int64_t count,
                  std::byte* rows) {
  const uint64_t bytes = bytes_of(array.storage.chunk, array.storage.item);
  const ChunkCopy copy(array, chunk.offset, first, count);
  if (copy.is_dense() && copy.bytes() == bytes)
    return decode(array, chunk, {rows + copy.begin_in_rows(), bytes});
  const auto decoded = std::make_unique_for_overwrite<std::byte[]>(bytes);
  if (!decode(array, chunk, {decoded.get(), bytes})) return false;
  copy.run(decoded.get(), rows);
  return true;
}

}  // namespace tutti
