import { AppError } from '../../base/errors.ts';
import { isUrl } from '../../host/install/model.ts';
import type { LargeFile } from '../../host/plan/large-file.ts';
import type { PrepareHostOptions } from '../../kubeadm/workflows/prepare-host.ts';
import type { FleetRunPorts } from '../ports.ts';
import { besideFleet } from './load-fleet.ts';

const MAX_REDIRECTIONS = 5;
/** A key file has a few KiB. */
const MAX_KEY_BYTES = 1024 * 1024;

export type InstallSources = Pick<PrepareHostOptions, 'templates' | 'readKey' | 'readFile'>;

/**
 * What hosts of a fleet are given from here: templates of files, keys of repositories, and programs. Keys and programs are read when the first host needs them, and once.
 * @param directory of the fleet file: relative paths count from there
 */
export async function installSources(services: FleetRunPorts, directory: string): Promise<InstallSources> {
  const pathOf = (path: string): string => besideFleet(path, `${directory}/fleet`, services.homeDirectory);
  return {
    templates: await services.templates(),
    readKey: once((source) => (isUrl(source) ? fetchKey(services, source) : services.input.readText(pathOf(source)))),
    readFile: once((path) => readProgram(services, pathOf(path))),
  };
}

function once<T>(read: (source: string) => Promise<T>): (source: string) => Promise<T> {
  const known = new Map<string, Promise<T>>();
  return (source) => {
    const reading = known.get(source) ?? read(source);
    known.set(source, reading);
    return reading;
  };
}

async function readProgram(services: FleetRunPorts, path: string): Promise<LargeFile> {
  return (await services.readProgram(path)) as LargeFile;
}

/** Redirections are followed: what comes is judged by its fingerprint, wherever it comes from. */
async function fetchKey({ web, signal }: FleetRunPorts, source: string): Promise<string> {
  const refuse = (why: string): AppError =>
    new AppError({
      code: 'INSTALL_KEY_UNREACHABLE',
      message: `cannot fetch ${source}: ${why}`,
      hint: 'Check the URL and the proxy, or save the key and write its path as packages.key',
    });
  let url = source;
  for (let i = 0; i <= MAX_REDIRECTIONS; i++) {
    const answer = await web.get({ url, trust: { kind: 'machine' }, maxBytes: MAX_KEY_BYTES, signal });
    if (answer.kind === 'failed') throw refuse(answer.issue.kind);
    if (answer.status === 200) return answer.text;
    if (answer.status < 300 || answer.status > 399 || answer.location === null) throw refuse(`the server answered ${answer.status}`);
    url = new URL(answer.location, url).href;
    if (!url.startsWith('https:')) throw refuse('it leads to where there is no TLS');
  }
  throw refuse('it leads from one place to the next');
}
