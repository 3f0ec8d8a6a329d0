#pragma once

#include <functional>
#include <memory>
#include <string>

namespace tutti {

// Work of a device that is recorded once and then launched with one call, which takes the host as long as a
// single kernel: a CUDA graph. Implemented by the device's library (collectives/device_entry.h).
class DeviceGraph {
 public:
  using Make = DeviceGraph* (*)(int device);  // the caller owns the graph

  virtual ~DeviceGraph() = default;  // no launch is under way

  // Between `begin` and `end`, work that this thread launches on its current stream is recorded, and not
  // done. The work uses the same addresses at each launch: memory that is allocated meanwhile belongs to the
  // graph for the graph's lifetime, also freed memory. Scalars of the host keep their values. A call that
  // would wait for the device throws c10::Error.
  virtual void begin() = 0;
  virtual void end() = 0;
  // Launches the recorded work on this thread's current stream.
  virtual void launch() = 0;
};

// How graphs are made of the process's kind of device; called when its library is loaded.
void make_graphs_by(DeviceGraph::Make make);

// Null if the kind of device has none.
std::unique_ptr<DeviceGraph> make_graph(int device);

// Records `work`. Errors of `work` pass through, and leave no record.
void record_graph(DeviceGraph& graph, const std::function<void()>& work);

// True if this thread records a graph.
bool records_graph();

// Throws UserError if this thread records a graph. `what` the caller does then once, and not at each launch:
// "draws numbers on the host".
void refuse_in_graph(const std::string& what);

}  // namespace tutti
