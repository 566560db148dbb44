import { join } from 'node:path';
import { expect } from 'vitest';
import type { Lab } from '../../lab/lab-options.ts';
import { joinArguments } from './join-arguments.ts';
import { runCommand } from './run-cli.ts';

/** The command line that prepares the cluster of a lab for joining hosts. */
export function adoptArguments(lab: Lab): readonly string[] {
  return ['cluster', 'adopt', '--kubeconfig', lab.kubeconfig];
}

/** Prepares the cluster of a lab, and joins its first host. */
export async function startFirstNode(lab: Lab, ...more: readonly string[]): Promise<void> {
  for (const argv of [adoptArguments(lab), [...joinArguments(lab, 'node1'), ...more]]) {
    const { code, stderr } = await runCommand(argv);
    expect(code, stderr).toBe(0);
  }
}

/**
 * Prepares a cluster with `init.yaml` and `admin.conf` of a directory.
 * @returns the arguments of the printed join command
 */
export async function adoptCluster(directory: string, ...more: readonly string[]): Promise<readonly string[]> {
  const files = ['--config', join(directory, 'init.yaml'), '--kubeconfig', join(directory, 'admin.conf')];
  const { code, stdout, stderr } = await runCommand(['cluster', 'adopt', ...files, '--print-join-command', ...more]);
  expect(code, stderr).toBe(0);
  return /^ {2}kubeletadm (join .*)$/m.exec(stdout)?.[1]?.split(' ') ?? [];
}
