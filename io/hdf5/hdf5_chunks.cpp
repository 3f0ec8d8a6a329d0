#include "io/hdf5/hdf5_chunks.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>

namespace tutti {
namespace {

constexpr const char* kGzip = "gzip";
constexpr const char* kShuffle = "shuffle";
constexpr unsigned kMostFilterNumbers = 8;
constexpr uint64_t kMostChunkBytes = uint64_t{1} << 32;

// Adds a filter of chunks.
void add_filter(hid_t list, unsigned index, Hdf5Storage& storage) {
  unsigned flags = 0, numbers[kMostFilterNumbers], config = 0;
  size_t count = kMostFilterNumbers;
  char name[64] = {};
  const H5Z_filter_t filter =
      H5Pget_filter2(list, index, &flags, &count, numbers, sizeof name, name, &config);
  storage.filters.push_back(filter == H5Z_FILTER_DEFLATE   ? kGzip
                            : filter == H5Z_FILTER_SHUFFLE ? kShuffle
                            : name[0] != '\0'              ? name
                                                           : "filter " + std::to_string(filter));
  if (H5Zfilter_avail(filter) <= 0) storage.missing_filter = storage.filters.back();
}

bool is_known(const std::string& filter) { return filter == kGzip || filter == kShuffle; }

// False for what only damaged headers say: HDF5's chunks have less than 4 GiB.
bool is_possible(const Shape& chunk, const Shape& shape, size_t item) {
  uint64_t bytes = item;
  for (const int64_t size : chunk) {
    if (size <= 0 || static_cast<uint64_t>(size) > kMostChunkBytes) return false;
    bytes *= static_cast<uint64_t>(size);
    if (bytes > kMostChunkBytes) return false;
  }
  return !chunk.empty() && chunk.size() == shape.size();
}

size_t bytes_of(const Hdf5Entry& entry, const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), c10::elementSize(entry.dtype),
                         [](size_t bytes, int64_t size) { return bytes * static_cast<size_t>(size); });
}

// Calls visit(offset) for each chunk of rows [first, first + count), in order.
void for_chunks(const Hdf5Entry& entry, int64_t first, int64_t count,
                const std::function<void(const Shape&)>& visit) {
  const Shape& chunk = entry.storage.chunk;
  Shape begin(chunk.size(), 0), end = entry.shape;
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
  ChunkCopy(const Hdf5Entry& entry, const Shape& offset, int64_t first, int64_t count)
      : entry_(entry), offset_(offset), low_(offset), high_(offset), first_(first) {
    for (size_t dim = 0; dim < offset.size(); ++dim)
      high_[dim] = std::min(offset[dim] + entry.storage.chunk[dim], entry.shape[dim]);
    low_[0] = std::max(low_[0], first);
    high_[0] = std::min(high_[0], first + count);
    item_ = c10::elementSize(entry.dtype);
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
      if (entry_.storage.chunk[later] != entry_.shape[later]) return false;
    return true;
  }

  size_t row_bytes() const { return stride(entry_.shape, 0); }

  // Bytes from an index of `dim` to the next.
  size_t stride(const Shape& shape, size_t dim) const {
    return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1, shape.end(), item_,
                           [](size_t bytes, int64_t size) { return bytes * static_cast<size_t>(size); });
  }

  void copy(size_t dim, const std::byte* from, std::byte* to) const {
    const size_t step_from = stride(entry_.storage.chunk, dim), step_to = stride(entry_.shape, dim);
    from += static_cast<size_t>(low_[dim] - offset_[dim]) * step_from;
    to += static_cast<size_t>(low_[dim] - (dim == 0 ? first_ : 0)) * step_to;
    const auto lines = static_cast<size_t>(high_[dim] - low_[dim]);
    if (has_whole_lines(dim)) {
      std::memcpy(to, from, lines * step_to);
      return;
    }
    for (size_t i = 0; i < lines; ++i) copy(dim + 1, from + i * step_from, to + i * step_to);
  }

  const Hdf5Entry& entry_;
  Shape offset_, low_, high_;
  int64_t first_;
  size_t item_ = 1;
};

// Undoes the filters, the last one first. False if the bytes are damaged.
bool decode(const Hdf5Entry& entry, const EncodedChunk& chunk, std::span<std::byte> to) {
  const auto& filters = entry.storage.filters;
  std::unique_ptr<std::byte[]> last, next;
  std::span<const std::byte> from = chunk.bytes;
  for (size_t i = filters.size(); i-- > 0;) {
    if (i > 0) next = std::make_unique_for_overwrite<std::byte[]>(to.size());
    std::byte* const out = i > 0 ? next.get() : to.data();
    if (filters[i] == kGzip) {
      uLongf size = to.size();
      const int code = uncompress(reinterpret_cast<Bytef*>(out), &size,
                                  reinterpret_cast<const Bytef*>(from.data()), from.size());
      if (code != Z_OK || size != to.size()) return false;
    } else {
      if (from.size() != to.size()) return false;
      unshuffle(from.data(), from.size(), c10::elementSize(entry.dtype), out);
    }
    from = {out, to.size()};
    last = std::move(next);
  }
  if (filters.empty() && from.size() == to.size()) std::memcpy(to.data(), from.data(), to.size());
  return from.size() == to.size();
}

}  // namespace

Hdf5Storage storage_of(hid_t dataset, const Shape& shape, size_t item, bool same_bytes) {
  const Hdf5Handle list(H5Dget_create_plist(dataset), H5Pclose);
  Hdf5Storage storage;
  if (H5Pget_layout(list) != H5D_CHUNKED) return storage;
  const int dims = H5Pget_chunk(list, 0, nullptr);
  std::vector<hsize_t> chunk(static_cast<size_t>(std::max(dims, 0)));
  H5Pget_chunk(list, dims, chunk.data());
  storage.chunk.assign(chunk.begin(), chunk.end());
  const int filters = H5Pget_nfilters(list);
  for (int i = 0; i < filters; ++i) add_filter(list, static_cast<unsigned>(i), storage);
  storage.decodable =
      same_bytes && is_possible(storage.chunk, shape, item) && std::ranges::all_of(storage.filters, is_known);
  return storage;
}

std::vector<EncodedChunk> read_encoded(hid_t dataset, const Hdf5Entry& entry, int64_t first, int64_t count) {
  std::vector<EncodedChunk> chunks;
  bool complete = true;
  for_chunks(entry, first, count, [&](const Shape& at) {
    const std::vector<hsize_t> offset(at.begin(), at.end());
    hsize_t bytes = 0;
    uint32_t skipped = 0;
    complete = complete && H5Dget_chunk_storage_size(dataset, offset.data(), &bytes) >= 0 && bytes > 0 &&
               bytes <= kMostChunkBytes;
    if (!complete) return;
    EncodedChunk& chunk = chunks.emplace_back(EncodedChunk{at, std::vector<std::byte>(bytes)});
    complete =
        H5Dread_chunk(dataset, H5P_DEFAULT, offset.data(), &skipped, chunk.bytes.data()) >= 0 && skipped == 0;
  });
  if (!complete) chunks.clear();
  return chunks;
}

bool decode_chunk(const Hdf5Entry& entry, const EncodedChunk& chunk, int64_t first, int64_t count,
                  std::byte* rows) {
  const size_t bytes = bytes_of(entry, entry.storage.chunk);
  const ChunkCopy copy(entry, chunk.offset, first, count);
  if (copy.is_dense() && copy.bytes() == bytes)
    return decode(entry, chunk, {rows + copy.begin_in_rows(), bytes});
  const auto decoded = std::make_unique_for_overwrite<std::byte[]>(bytes);
  if (!decode(entry, chunk, {decoded.get(), bytes})) return false;
  copy.run(decoded.get(), rows);
  return true;
}

}  // namespace tutti
