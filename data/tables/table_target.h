#pragma once

namespace tutti {

// What the targets of a table are: as they look, classes, or numbers. Free of libtorch.
enum class TableTarget { kAuto, kClass, kNumber };

}  // namespace tutti
