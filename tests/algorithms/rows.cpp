#include "tests/algorithms/rows.h"

namespace tutti {
namespace {

using enum Event;

// 25 steps an epoch.
const std::string kImages =
    "[model]\nkind = 'mlp'\nhidden = [16]\n[data.train]\nkind = 'hdf5'\npath = '" TUTTI_SOURCE_DIR
    "/examples/data/digits.h5'\ngroup = 'train'\nbatch_size = 24\nsubset_num_batches = 25\nshuffle = true\n"
    "[optimizer]\nkind = 'sgd'\nlr = 0.1\nmomentum = 0.9\n";

Acts once(Event event) { return {event, 0, 0}; }

}  // namespace

const std::vector<AlgorithmRow>& algorithm_rows() {
  static const std::vector<AlgorithmRow> rows = {
      {"ema",
       "half_life = '5ba'\nema_start = '10ba'\n",
       kImages,
       {once(kBeforeLoad), {kBatchEnd, 10, 50}, {kEvalStart, 25, 50, 25}, {kEvalEnd, 25, 50, 25}}},
      {"gradient_clipping",
       "clipping_type = 'norm'\nclipping_threshold = 0.1\n",
       kImages,
       {{kAfterTrainBatch, 0, 49}}},
      {"sam", "rho = 0.1\ninterval = 2\n", kImages, {once(kAfterLoad)}},
      {"swa",
       "swa_start = '20ba'\nswa_end = '40ba'\nupdate_interval = '5ba'\nschedule_swa_lr = true\n",
       kImages,
       {once(kBeforeLoad), {kBatchEnd, 20, 40}}},
  };
  return rows;
}

}  // namespace tutti
