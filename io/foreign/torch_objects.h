#pragma once

#include <cstdint>
#include <string>

#include "io/foreign/object_tree.h"
#include "io/mapped_file.h"
#include "io/weights/pickle_objects.h"

namespace tutti {

// Objects beside weights in checkpoints of Composer, Lightning and transformers, as plain values.
extern const PickledObjects kObjectsOfCheckpoints;

// The objects of torch.save at these bytes of a file. Throws UserError.
ObjectTree torch_objects_at(const MappedFile& file, uint64_t begin, uint64_t size);

}  // namespace tutti
