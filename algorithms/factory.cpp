#include "algorithms/factory.h"

#include "algorithms/augmentation/options.h"
#include "algorithms/loop/options.h"
#include "algorithms/surgery/options.h"
#include "runtime/error.h"

namespace tutti {

AlgorithmPtr make_algorithm(const Setting& section) {
  if (auto made = AugmentationKinds::made<AlgorithmPtr>(section)) return made;
  if (auto made = LoopKinds::made<AlgorithmPtr>(section)) return made;
  auto made = SurgeryKinds::made<AlgorithmPtr>(section);
  TUTTI_ASSERT(made, "the catalog has checked the kind");
  return made;
}

}  // namespace tutti
