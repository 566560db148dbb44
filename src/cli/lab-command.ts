import type { Command } from 'commander';
import type { LabRequest } from '../../lab/lab-options.ts';
import type { On } from './command.ts';
import { flagNumber, flagText } from './option-values.ts';
import { integerBetween } from './options.ts';
import { flagDuration } from './request-parts.ts';

/** Each host is an SSH server in this process; a lab of this size was tested. */
const MAX_HOSTS = 1000;

/** `lab`. */
export function defineLab(lab: Command, on: On): void {
  lab
    .option('--demo', 'show plan, apply, a rollback, drift and new certificates on three hosts, write a report, and exit')
    .option('--agents', 'install the kubeletadm agent on every host that joins, with the default options of dynamic enable')
    .option('--trial <duration>', 'value of --trial for the agents', '10s')
    .option('--hosts <count>', 'number of hosts, at least 1', integerBetween(1, MAX_HOSTS), 3)
    .option('--dir <dir>', 'directory for the files of the lab (default: a temporary directory)');
  on(
    lab,
    (_, options): LabRequest => ({
      directory: flagText(options, 'dir'),
      hosts: flagNumber(options, 'hosts', 3),
      demo: options.demo === true,
      agents: options.agents === true,
      trialMs: flagDuration(options, 'trial', { example: 'Use a duration such as 10s' }) ?? 0,
    }),
    async (...args) => (await import('../../lab/run-lab.ts')).runLab(...args),
  );
}
