import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import type { CommandOptions, On } from './command.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagNumber } from './option-values.ts';
import { addClusterOptions, integerBetween } from './options.ts';
import type { Services } from './output/services.ts';
import { kubeconfigRequest, verbosityOf } from './request-parts.ts';
import type { UiRequest } from './ui.ts';

/** `ui`. */
export function defineUi(ui: Command, on: On): void {
  addClusterOptions(ui);
  addOptionGroup(ui, HEADINGS.output, (output) =>
    output.option('--port <port>', 'port on 127.0.0.1; 0: any free port', integerBetween(0, 65_535), 0),
  );
  addSections(on(ui, uiRequest, run), { notes: NOTES, examples: EXAMPLES });
}

const NOTES = `The page shows all rollouts: failures with their cause, the state of each node, gates and revisions. It can pause, resume and undo a rollout with the rights of the kubeconfig, so it is served on 127.0.0.1 only, and the printed URL contains a random token. Ctrl-C ends the command; rollouts continue.`;

const EXAMPLES = `  kubeletadm ui
  ssh -t -L 8080:127.0.0.1:8080 HOST kubeletadm ui --port 8080    # the page of another host, at http://localhost:8080/TOKEN/`;

function uiRequest(args: readonly string[], options: CommandOptions): UiRequest {
  if (args.length > 0) throw usageError(`ui takes no arguments: ${args.join(' ')}`);
  return { cluster: kubeconfigRequest(options), port: flagNumber(options, 'port', 0), verbosity: verbosityOf(options) };
}

async function run(services: Services, request: UiRequest): Promise<ExitCode> {
  return (await import('./ui.ts')).runUi(services, request);
}
