/// @file
/// Stages for several devices with a mistake in what ranks tell each other.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

/// Of the stages 41 to 43, which they are made from, on three devices.
enum class SeveralMutation {
  none_41,
  kernel_first,     ///< the kernel does not wait for the exchange
  overwrites,       ///< the rows of the next image come while those of this one may still be read
  not_in_graph_41,  ///< the exchange is on a stream that follows nothing: the graph is without it
  none_42,
  borders_first,    ///< the borders are made on the first stream, before it waits for the second
  not_in_graph_42,  ///< there is no fork
  no_join,          ///< the graph ends without the borders
  late_interior,    ///< the interior waits for the exchange, too
  none_43,
  no_wait,          ///< for the owners of rows
  one_look,         ///< at their signals, whether they are set or not
  plain_store,      ///< of the signal, without release
  same_epoch,       ///< launches are not counted: signals of the last one serve for the next
  no_done,          ///< nobody tells or waits at the end
  done_first,       ///< the rank tells that it has read before it reads
  nobody_tells,     ///< that rows are complete
  not_in_graph_43,  ///< there is no fork
};

/// Defined for the mutations above.
template <SeveralMutation M>
Stage* make_several_mutant();

}  // namespace convladder
