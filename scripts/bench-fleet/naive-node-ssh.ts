// A contestant: node-ssh as in its documentation, one putFile per file and a command at the end, all hosts in
// parallel.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NodeSSH } from 'node-ssh';
import { workFiles } from './work.ts';

interface Job {
  readonly addresses: readonly string[];
  readonly port: number;
  readonly user: string;
  readonly identityFile: string;
  readonly rootsDirectory: string;
  readonly directory: string;
  readonly forks: number;
}

const job: Job = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));

async function bring(address: string): Promise<void> {
  const ssh = new NodeSSH();
  await ssh.connect({ host: address, port: job.port, username: job.user, privateKeyPath: job.identityFile });
  const root = join(job.rootsDirectory, address);
  const files = workFiles(address);
  for (const { path, content } of files) {
    const local = join(job.directory, 'naive', address, path);
    mkdirSync(join(local, '..'), { recursive: true });
    writeFileSync(local, content);
    await ssh.putFile(local, `${root}${path}.new`);
  }
  const moves = files.map(
    ({ path, mode }) => `chmod ${mode.toString(8)} '${root}${path}.new' && mv -f '${root}${path}.new' '${root}${path}'`,
  );
  const { code, stderr } = await ssh.execCommand(`${moves.join(' && ')} && systemctl restart kubelet`);
  if (code !== 0) throw new Error(`${address}: ${stderr}`);
  ssh.dispose();
}

async function main(): Promise<void> {
  const waiting = [...job.addresses];
  const work = async (): Promise<void> => {
    for (let address = waiting.shift(); address !== undefined; address = waiting.shift()) await bring(address);
  };
  await Promise.all(Array.from({ length: job.forks }, work));
  process.stdout.write(`${JSON.stringify({ changed: job.addresses.length, failed: [] })}\n`);
}

main();
