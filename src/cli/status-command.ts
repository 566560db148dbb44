import type { Command } from 'commander';
import type { CommandOptions, On } from './command.ts';
import { addFleetHostOptions, fleetRunRequest } from './fleet-options.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagList } from './option-values.ts';
import { addClusterOptions, addHostOption, addTableOptions } from './options.ts';
import { hostAddress, tableRequest, verbosityOf } from './request-parts.ts';
import type { StatusRequest } from './status.ts';

/** `status [HOST|NODE...]`. */
export function defineStatus(status: Command, on: On): void {
  status.argument('[name...]', 'names of hosts in the fleet file, or of Nodes as NAME or node/NAME (default: all)');
  addOptionGroup(addTableOptions(status), HEADINGS.output, (output) =>
    output.option('-w, --watch', 'after the first table, read again every 10 s and print changed rows until interrupted'),
  );
  addClusterOptions(
    addFleetHostOptions(addHostOption(status, 'host to inspect over SSH without a fleet file, instead of names (repeatable)')),
  );
  on(status, statusRequest, async (...args) => (await import('./status.ts')).runStatus(...args));
  addSections(status, {
    notes:
      'A host of the fleet file and the Node that its kubelet has registered share a row. Without a fleet file, the table has the Nodes alone, or the hosts of --host with their Nodes. If the API server does not answer, the table shows what the hosts themselves report. "unknown" means that the value was not read: the lines below the table give the reason.',
    examples:
      '  kubeletadm status\n  kubeletadm status edge-017 -o wide\n  kubeletadm status -l pool=edge --watch\n  kubeletadm status --host root@cp1 --host root@worker1',
  });
}

function statusRequest(names: readonly string[], options: CommandOptions): StatusRequest {
  return {
    ...fleetRunRequest(options),
    names: [...new Set(names.map(hostAddress))],
    hosts: [...new Set(flagList(options, 'host').map(hostAddress))],
    output: { ...tableRequest(options), verbosity: verbosityOf(options) },
    watches: options.watch === true,
  };
}
