#pragma once

namespace tutti {

// The meaning of a table's targets: by their look, classes, or numbers. Free of libtorch.
enum class TableTarget { kAuto, kClass, kNumber };

}  // namespace tutti
