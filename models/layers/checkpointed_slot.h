#pragma once

#include <string>

#include "models/layers/layer.h"

namespace tutti {

// Activation checkpointing: until backward a call of the slot keeps its input, and none of the tensors that
// autograd saves within the call. When backward needs the first of these tensors, the layer is called again
// and gives all tensors; a tensor is freed once used by backward. The graph of the first call stays, so
// gradients have the same bits, and hooks on tensors run in the same order. As torch.utils.checkpoint with
// use_reentrant=False (Chen et al. 2016, arXiv:1604.06174).
//
// The second call has the first call's context, autocast and random numbers; its statistics are discarded.
// Earlier hooks on the slot are outside of both calls; later hooks, and hooks on slots below, run in both
// calls. The second call ends early, with the last tensor that is needed: in a hook or layer, by an exception
// that is no std::exception.
//
// With `offload` the input of a layer on a device waits in pinned memory of the host, which the device writes
// and reads in the order of its work.
//
// Acts as long as the handle lives, if gradients are recorded. Calls within a call of another checkpointed
// slot are part of the outer call. `name`: of the layer, for errors: backward throws UserError if the layer's
// input was changed in place after or in the call, or if the second call saves other tensors than the first.
[[nodiscard]] Slot::Hook checkpoint_activations(Slot& slot, const std::string& name, bool offload = false);

}  // namespace tutti
