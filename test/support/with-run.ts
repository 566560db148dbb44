import { DEFAULT_RUN, type RunSettings } from '../../src/host/run-settings.ts';

/** Options with the settings of a run that has these members instead of the defaults. */
export const withRun = (change: Partial<RunSettings>): { readonly run: RunSettings } => ({ run: { ...DEFAULT_RUN, ...change } });
