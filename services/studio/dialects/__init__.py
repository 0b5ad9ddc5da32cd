"""One module per provider dialect: JSON body -> job, record -> JSON body, refusal -> error envelope. All of it pure."""
