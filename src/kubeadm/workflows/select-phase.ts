import type { Phase } from '../../host/phase.ts';

/** Adapts a phase to a workflow by selecting its part of the workflow's input. */
export function selectPhase<Whole, Part>(phase: Phase<Part>, select: (input: Whole) => Part): Phase<Whole> {
  return {
    name: phase.name,
    short: phase.short,
    tidiesUp: phase.tidiesUp,
    writesFilesOnly: phase.writesFilesOnly,
    contextFor: (context, input) => phase.contextFor(context, select(input)),
    ready: (context, input) => phase.ready(context, select(input)),
    inspect: (context, input) => phase.inspect(context, select(input)),
  };
}
