import type { Lab } from '../../lab/lab-options.ts';

/** The command line by which a host joins the API server of a lab, with the lab's token and CA. */
export function joinArguments(lab: Lab, host: string): readonly string[] {
  const endpoint = lab.server.replace(/^https:\/\//, '');
  return ['join', endpoint, '--token', lab.token.reveal(), '--ca-cert', lab.caFile, '--host', host, '--ssh-config', lab.sshConfig];
}
