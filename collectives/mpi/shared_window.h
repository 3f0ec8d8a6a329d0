#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti {

// Memory that the ranks of one host share: one segment each, mapped by all. Segments are anonymous (memfd),
// so nothing is left behind however a rank ends, /dev/shm's size does not bound them, and a rank drops its
// mapping when it likes (an MPI window would have to be freed by all together).
class SharedWindow {
 public:
  // `bytes` of this rank, zeroed and backed by real memory. Collective over `host`; blocks. Throws
  // OperatingError on every rank when one can't.
  SharedWindow(MPI_Comm host, int64_t bytes);
  ~SharedWindow();
  SharedWindow(const SharedWindow&) = delete;

  std::byte* segment(int local) const { return segments_[local].data; }
  std::byte* own() const { return segments_[local_].data; }
  bool owns(const void* data, int64_t bytes) const;  // whether it lies in this rank's segment
  int64_t offset(const void* data) const { return static_cast<const std::byte*>(data) - own(); }

 private:
  struct Segment {
    std::byte* data = nullptr;
    int64_t bytes = 0;
  };
  struct Offer;
  void unmap();

  int local_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace tutti
