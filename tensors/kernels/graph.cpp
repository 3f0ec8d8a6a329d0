#include "tensors/kernels/graph.h"

#include <atomic>

#include "runtime/error.h"

namespace tutti {
namespace {

std::atomic<DeviceGraph::Make> maker{nullptr};
thread_local bool recording = false;

class Recording {
 public:
  explicit Recording(DeviceGraph& graph) : graph_(graph) {
    graph_.begin();
    recording = true;
  }
  Recording(const Recording&) = delete;
  ~Recording() {
    if (recording) end_after_error();
  }
  void end() {
    recording = false;
    graph_.end();
  }

 private:
  // The error of the work counts.
  void end_after_error() noexcept try { end(); } catch (const std::exception&) {
  }

  DeviceGraph& graph_;
};

}  // namespace

void make_graphs_by(DeviceGraph::Make make) { maker = make; }

std::unique_ptr<DeviceGraph> make_graph(int device) {
  const DeviceGraph::Make make = maker;
  return std::unique_ptr<DeviceGraph>(make ? make(device) : nullptr);
}

void record_graph(DeviceGraph& graph, const std::function<void()>& work) {
  Recording now(graph);
  work();
  now.end();
}

bool records_graph() { return recording; }

void refuse_in_graph(const std::string& what) {
  if (recording) throw UserError(what);
}

}  // namespace tutti
